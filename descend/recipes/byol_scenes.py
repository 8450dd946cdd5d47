"""byol-scenes: BYOL learns what shapes look like from scenes without labels, and without comparing scenes."""

from descend.data.images.shape_scenes import SAME_SHAPE, ShapeScenes
from descend.engine.loop import Loop
from descend.kinds.self_supervised import EmbedBYOL
from descend.models.contrastive_encoder import ContrastiveEncoderConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = EmbedBYOL(
    about="BYOL on generated scenes without labels, judged by a linear probe (your images: --data.path FOLDER)",
    parameters=108_048,
    takes="3 min",
    model=ContrastiveEncoderConfig(block="plain", stride=2, pool="max"),
    data=ShapeScenes(count=8000, valid=0.1, test=0.1),
    views=SAME_SHAPE,
    momentum=0.98,
    known=4000,
    optim=AdamW(lr=6e-3, weight_decay=0.01),
    schedule=Cosine(warmup=50, floor=0.01),
    loop=Loop(steps=2500, batch=128, eval_every=250, save_every=250, watch="max probe"),
)
