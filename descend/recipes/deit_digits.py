"""deit-digits: a small DeiT on handwritten digits; with --teacher RUN it also learns what a trained classifier says."""

from descend.data.images.digits import Digits
from descend.data.images.warp import Warp
from descend.engine.loop import Loop
from descend.kinds.distill import DistillImages
from descend.models.deit import DeiTConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = DistillImages(
    about="a small DeiT on handwritten digits, alone or taught by a trained classifier (--teacher RUN)",
    parameters=203_732,
    takes="1 min",
    model=DeiTConfig(patch=4, width=64, depth=4, heads=4, hidden=256, eps=1e-6),
    data=Digits(size=16, warp=Warp(shift=0.06, turn=10.0, zoom=0.1)),
    optim=AdamW(lr=2e-3, weight_decay=0.05),
    schedule=Cosine(warmup=100, floor=0.01),
    loop=Loop(steps=1500, batch=64, clip=1.0, ema=0.99, eval_every=100, save_every=500, watch="max accuracy"),
)
