"""beit-digits: a small BEiT fills in hidden patches of handwritten digits, without their classes.

descend train beit-digits --out runs/beit
descend train beit-digits-classify --start.path runs/beit
"""

from descend.data.images.digits import Digits
from descend.data.images.hidden_patches import Hiding
from descend.data.images.warp import Warp
from descend.engine.loop import Loop
from descend.kinds.masked_images import MaskedImages
from descend.models.beit import BeitConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = MaskedImages(
    about="a small BEiT learns images without classes by filling in hidden patches (--data.path FOLDER)",
    parameters=204_144,
    takes="1 min",
    model=BeitConfig(
        vocab=32, patch=2, width=64, depth=4, heads=4, hidden=256, drop_path=0.0, eps=1e-6, scale=1.0,
        mask_token=True, absolute=True, shared_bias=True,
    ),
    data=Digits(warp=Warp(shift=0.06, turn=10.0, zoom=0.1)),
    hiding=Hiding(share=0.4, smallest=2),
    optim=AdamW(lr=2e-3, betas=(0.9, 0.98), weight_decay=0.05),
    schedule=Cosine(warmup=100, floor=0.01),
    loop=Loop(steps=1500, batch=64, clip=1.0, eval_every=100, save_every=500),
)  # fmt: skip
