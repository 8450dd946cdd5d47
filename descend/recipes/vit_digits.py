"""vit-digits: a small Vision Transformer reads handwritten digits. The data ships with scikit-learn."""

from descend.data.images.digits import Digits
from descend.data.images.warp import Warp
from descend.engine.loop import Loop
from descend.kinds.images import ClassifyImages
from descend.models.vit import ViTConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = ClassifyImages(
    about="a small Vision Transformer on handwritten digits (or your own images: --data.path FOLDER)",
    parameters=202_186,
    takes="1 min",
    model=ViTConfig(patch=2, width=64, depth=4, heads=4, hidden=256, eps=1e-6),
    data=Digits(warp=Warp(shift=0.06, turn=10.0, zoom=0.1)),
    optim=AdamW(lr=2e-3, weight_decay=0.05),
    schedule=Cosine(warmup=100, floor=0.01),
    loop=Loop(steps=1500, batch=64, clip=1.0, ema=0.99, eval_every=100, save_every=500, watch="max accuracy"),
)
