"""resnet-digits: a residual network of 14 layers reads handwritten digits. The data ships with scikit-learn."""

from descend.data.images.digits import Digits
from descend.data.images.warp import Warp
from descend.engine.loop import Loop
from descend.kinds.images import ClassifyImages
from descend.models.resnet_cifar import ResNetCifarConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = ClassifyImages(
    about="a ResNet of 14 layers on handwritten digits (or your own images: --data.path FOLDER)",
    parameters=172_218,
    takes="2 min",
    model=ResNetCifarConfig(layers=14),
    data=Digits(size=16, warp=Warp(shift=0.06, turn=10.0, zoom=0.1)),
    optim=AdamW(lr=3e-3, weight_decay=0.05),
    schedule=Cosine(warmup=50, floor=0.01),
    loop=Loop(steps=1000, batch=64, ema=0.99, eval_every=50, save_every=250, watch="max accuracy"),
)
