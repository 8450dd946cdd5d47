"""lenet-mnist: LeNet-5 on MNIST: --data.path FOLDER of its IDX files, else the embedded digits.

The paper of 1998 reports 0.95% test error, 99.05% right, without distortions of the training images.
"""

from descend.data.images.digits import Digits
from descend.data.images.warp import Warp
from descend.engine.loop import Loop
from descend.kinds.images import ClassifyImages
from descend.models.lenet import LeNetConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = ClassifyImages(
    about="LeNet-5 for MNIST (--data.path FOLDER of the IDX files; else the embedded digits)",
    parameters=61_706,
    takes="8 min",
    model=LeNetConfig(),
    data=Digits(size=32, valid=0.1, warp=Warp(shift=0.05, turn=8.0, zoom=0.08)),
    optim=AdamW(lr=3e-3, weight_decay=0.02),
    schedule=Cosine(warmup=200, floor=0.005),
    loop=Loop(steps=15_000, batch=128, ema=0.998, eval_every=500, save_every=2000, watch="max accuracy"),
)
