"""mlp-digits: a multilayer perceptron reads handwritten digits. The data ships with scikit-learn."""

from descend.data.images.digits import Digits
from descend.data.images.warp import Warp
from descend.engine.loop import Loop
from descend.kinds.images import ClassifyImages
from descend.models.mlp import MLPConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = ClassifyImages(
    about="a multilayer perceptron on handwritten digits, with random warps",
    parameters=85_002,
    takes="10 s",
    model=MLPConfig(hidden=(256, 256)),
    data=Digits(warp=Warp(shift=0.06, turn=10.0, zoom=0.1)),
    optim=AdamW(lr=2e-3, weight_decay=0.05),
    schedule=Cosine(warmup=50, floor=0.01),
    loop=Loop(steps=1500, batch=64, ema=0.99, eval_every=100, save_every=500, watch="max accuracy"),
)
