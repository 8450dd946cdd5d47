"""dalle-scenes: captions to images by tokens: descend sample RUN --prompt "a large red circle"."""

from descend.data.images.captions import Captions
from descend.engine.loop import Loop
from descend.kinds.visual_tokens import TextToImageTokens
from descend.models.dalle import DalleConfig
from descend.models.vq_vae import VQVAEConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = TextToImageTokens(
    about="DALL-E on generated scenes with captions (or your own: --data.path PAIRS.jsonl)",
    parameters=1_034_555,
    takes="15 min",
    model=DalleConfig(VQVAEConfig(maps=48, vocab=256, code=8), width=128, depth=4, heads=4),
    data=Captions(count=20_000, longest=14),
    optim=AdamW(lr=2e-3, weight_decay=0.02),
    schedule=Cosine(warmup=100, floor=0.01),
    loop=Loop(steps=2500, batch=48, clip=1.0, eval_every=500, save_every=1000, watch="min reconstruction"),
)
