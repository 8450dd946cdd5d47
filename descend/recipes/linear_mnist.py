"""linear-mnist: softmax regression for MNIST, no hidden layer: --data.path FOLDER of its IDX files, else the digits."""

from descend.data.images.digits import Digits
from descend.engine.loop import Loop
from descend.kinds.images import ClassifyImages
from descend.models.mlp import MLPConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = ClassifyImages(
    about="a linear classifier for MNIST, to compare with (--data.path FOLDER of the IDX files; else the digits)",
    parameters=7_850,
    takes="20 s",
    model=MLPConfig(hidden=()),
    data=Digits(size=28, valid=0.1),
    optim=AdamW(lr=3e-3, weight_decay=0.01),
    schedule=Cosine(warmup=100, floor=0.01),
    loop=Loop(steps=2500, batch=128, eval_every=500, save_every=1250, watch="max accuracy"),
)
