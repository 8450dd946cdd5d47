"""mae-digits: a masked autoencoder learns handwritten digits, without their classes, by painting hidden patches.

descend train mae-digits --out runs/mae
descend train vit-digits --start.path runs/mae
"""

from descend.data.images.digits import Digits
from descend.data.images.views import Viewing
from descend.engine.loop import Loop
from descend.kinds.masked_autoencoder import PaintPatches
from descend.models.vit_mae import ViTMAEConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = PaintPatches(
    about="a masked autoencoder on handwritten digits without labels (your images: --data.path FOLDER)",
    parameters=215_460,
    takes="1 min",
    model=ViTMAEConfig(
        patch=2, width=64, depth=4, heads=4, hidden=256, eps=1e-6, decoder_width=32, decoder_depth=1, decoder_heads=4,
        decoder_hidden=128, hide=0.6,
    ),
    data=Digits(),
    views=Viewing(crop=1.0, flip=0.0, turn=10.0, shift=0.06, zoom=0.1, colour=0.0, grey=0.0),
    optim=AdamW(lr=2e-3, betas=(0.9, 0.95), weight_decay=0.05),
    schedule=Cosine(warmup=100, floor=0.01),
    loop=Loop(steps=1500, batch=64, clip=1.0, eval_every=150, save_every=750, watch="min loss"),
)  # fmt: skip
