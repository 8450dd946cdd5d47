"""beit-digits-classify: the BEiT of beit-digits learns the classes, from scratch or from --start.path RUN."""

from descend.data.images.digits import Digits
from descend.data.images.warp import Warp
from descend.engine.loop import Loop
from descend.kinds.images import ClassifyImages
from descend.models.beit import BeitConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = ClassifyImages(
    about="a small BEiT classifies digits, from scratch or from a pre-trained one (--start.path runs/beit)",
    parameters=203_274,
    takes="1 min",
    model=BeitConfig(
        vocab=32,
        patch=2,
        width=64,
        depth=4,
        heads=4,
        hidden=256,
        drop_path=0.0,
        eps=1e-6,
        scale=1.0,
        absolute=True,
        own_bias=True,
    ),
    data=Digits(warp=Warp(shift=0.06, turn=10.0, zoom=0.1)),
    optim=AdamW(lr=2e-3, weight_decay=0.05),
    schedule=Cosine(warmup=50, floor=0.01),
    loop=Loop(steps=600, batch=64, clip=1.0, ema=0.99, eval_every=50, save_every=300, watch="max accuracy"),
)
