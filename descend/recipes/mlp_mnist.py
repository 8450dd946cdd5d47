"""mlp-mnist: two hidden layers of 512 for MNIST: --data.path FOLDER of its IDX files, else the embedded digits."""

from descend.data.images.digits import Digits
from descend.data.images.warp import Warp
from descend.engine.loop import Loop
from descend.kinds.images import ClassifyImages
from descend.models.mlp import MLPConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = ClassifyImages(
    about="a multilayer perceptron for MNIST (--data.path FOLDER of the IDX files; else the embedded digits)",
    parameters=669_706,
    takes="3 min",
    model=MLPConfig(hidden=(512, 512)),
    data=Digits(size=28, valid=0.1, warp=Warp(shift=0.05, turn=8.0, zoom=0.08)),
    optim=AdamW(lr=1e-3, weight_decay=0.05),
    schedule=Cosine(warmup=200, floor=0.01),
    loop=Loop(steps=4000, batch=128, ema=0.998, eval_every=400, save_every=1000, watch="max accuracy"),
)
