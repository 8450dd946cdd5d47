"""lenet-digits: LeNet-5 at its published size reads handwritten digits. The data ships with scikit-learn."""

from descend.data.images.digits import Digits
from descend.data.images.warp import Warp
from descend.engine.loop import Loop
from descend.kinds.images import ClassifyImages
from descend.models.lenet import LeNetConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = ClassifyImages(
    about="LeNet-5 on handwritten digits (or MNIST files: --data.path FOLDER)",
    parameters=61_706,
    takes="20 s",
    model=LeNetConfig(),
    data=Digits(size=32, warp=Warp(shift=0.06, turn=10.0, zoom=0.1)),
    optim=AdamW(lr=2e-3, weight_decay=0.01),
    schedule=Cosine(warmup=50, floor=0.01),
    loop=Loop(steps=1000, batch=64, ema=0.99, eval_every=50, save_every=250, watch="max accuracy"),
)
