"""vit-mnist: a Vision Transformer from scratch for MNIST (--data.path FOLDER of its IDX files; else digits)."""

from descend.data.images.digits import Digits
from descend.data.images.warp import Warp
from descend.engine.loop import Loop
from descend.kinds.images import ClassifyImages
from descend.models.vit import ViTConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = ClassifyImages(
    about="a Vision Transformer for MNIST (--data.path FOLDER of the IDX files; else the embedded digits)",
    parameters=380_938,
    takes="12 min",
    model=ViTConfig(patch=7, width=96, depth=4, heads=4, hidden=288, eps=1e-6),
    data=Digits(size=28, valid=0.1, warp=Warp(shift=0.07, turn=12.0, zoom=0.12)),
    optim=AdamW(lr=2e-3, weight_decay=0.05),
    schedule=Cosine(warmup=300, floor=0.01),
    loop=Loop(steps=10000, batch=128, clip=1.0, ema=0.998, eval_every=1000, save_every=2000, watch="max accuracy"),
)
