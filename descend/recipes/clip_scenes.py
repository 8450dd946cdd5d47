"""clip-scenes: CLIP learns from captioned scenes, then names colours and shapes that it never saw together.

One block reads the captions: with two, one of three seeds named 0.85 of the images of new pairs, the others 0.99.
"""

from descend.data.images.captions import Captions
from descend.engine.loop import Loop
from descend.kinds.contrastive import ContrastRecipe
from descend.models.clip_resnet import ClipResNetConfig
from descend.models.clip_text_model import ClipTextConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = ContrastRecipe(
    about="CLIP with a residual network on generated scenes with captions (or your own: --data.path PAIRS.jsonl)",
    parameters=158_033,
    takes="4 min",
    model=ClipResNetConfig(text=ClipTextConfig(width=64, depth=1, heads=2, hidden=256), layers=8),
    data=Captions(count=20_000),
    optim=AdamW(lr=3e-3, weight_decay=0.05),
    schedule=Cosine(warmup=100, floor=0.01),
    loop=Loop(steps=1500, batch=128, clip=1.0, eval_every=150, save_every=500, watch="min loss"),
)
