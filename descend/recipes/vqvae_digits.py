"""vqvae-digits: digits as 16 whole numbers, and a transformer that learns to write such numbers."""

from descend.data.images.digits import Digits
from descend.engine.loop import Loop
from descend.kinds.visual_tokens import TokenizeImages
from descend.models.dalle import DalleConfig
from descend.models.vq_vae import VQVAEConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = TokenizeImages(
    about="a VQ-VAE of digits with an autoregressive prior over its tokens (--data.path FOLDER; then: descend sample)",
    parameters=416_633,
    takes="1 min",
    model=DalleConfig(VQVAEConfig(maps=48, halvings=1, vocab=64, code=8), width=96, depth=3, heads=4),
    data=Digits(),
    optim=AdamW(lr=2e-3, weight_decay=0.01),
    schedule=Cosine(warmup=100, floor=0.01),
    loop=Loop(steps=2000, batch=64, clip=1.0, eval_every=250, save_every=1000, watch="min reconstruction"),
)
