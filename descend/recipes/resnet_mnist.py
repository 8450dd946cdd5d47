"""resnet-mnist: a ResNet of 14 layers for MNIST: --data.path FOLDER of its IDX files, else the embedded digits."""

from descend.data.images.digits import Digits
from descend.data.images.warp import Warp
from descend.engine.loop import Loop
from descend.kinds.images import ClassifyImages
from descend.models.resnet_cifar import ResNetCifarConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = ClassifyImages(
    about="a ResNet of 14 layers for MNIST (--data.path FOLDER of the IDX files; else the embedded digits)",
    parameters=172_218,
    takes="12 min",
    model=ResNetCifarConfig(layers=14),
    data=Digits(size=28, valid=0.05, warp=Warp(shift=0.07, turn=12.0, zoom=0.12)),
    optim=AdamW(lr=4e-3, weight_decay=0.05),
    schedule=Cosine(warmup=200, floor=0.005),
    loop=Loop(steps=2200, batch=192, ema=0.998, eval_every=200, save_every=1100, watch="max accuracy"),
)
