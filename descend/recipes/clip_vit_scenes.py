"""clip-vit-scenes: CLIP with a vision transformer, as transformers opens it, learns from captioned scenes."""

from descend.data.images.captions import Captions
from descend.engine.loop import Loop
from descend.kinds.contrastive import ContrastRecipe
from descend.models.clip import ClipConfig
from descend.models.clip_text_model import ClipTextConfig
from descend.models.clip_vision_model import ClipVisionConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = ContrastRecipe(
    about="CLIP with a vision transformer on generated scenes with captions (or your own: --data.path PAIRS.jsonl)",
    parameters=957_889,
    takes="10 min",
    model=ClipConfig(
        text=ClipTextConfig(width=64, depth=2, heads=2, hidden=256),
        image=ClipVisionConfig(patch=8, width=128, depth=4, heads=4, hidden=512),
        width=64,
    ),
    data=Captions(count=30_000),
    optim=AdamW(lr=1e-3, weight_decay=0.1),
    schedule=Cosine(warmup=200, floor=0.01),
    loop=Loop(steps=3000, batch=128, clip=1.0, eval_every=300, save_every=1000, watch="min loss"),
)
