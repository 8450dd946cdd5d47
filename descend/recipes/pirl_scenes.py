"""pirl-scenes: PIRL learns from scenes and their shuffled pieces, with a memory of all scenes."""

from descend.data.images.shape_scenes import ShapeScenes
from descend.data.images.views import Viewing
from descend.engine.loop import Loop
from descend.kinds.self_supervised import EmbedPIRL
from descend.models.contrastive_encoder import ContrastiveEncoderConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = EmbedPIRL(
    about="PIRL with a jigsaw on generated scenes without labels (your images: --data.path FOLDER)",
    parameters=111_952,
    takes="8 min",
    model=ContrastiveEncoderConfig(pieces=4),
    data=ShapeScenes(count=8000, valid=0.1, test=0.1),
    views=Viewing(1.0, 0.5, turn=180.0, shift=0.15, zoom=0.2, colour=0.1, balance=0.15, grey=0.0, light=0.3),
    negatives=256,
    momentum=0.5,
    tau=0.2,
    known=4000,
    optim=AdamW(lr=2e-3, weight_decay=0.01),
    schedule=Cosine(warmup=50, floor=0.01),
    loop=Loop(steps=1500, batch=128, eval_every=500, save_every=500, watch="max probe"),
)
