"""simclr-scenes: SimCLR learns what shapes look like from scenes without labels.

descend train simclr-scenes --out runs/simclr
descend train cnn-images --data.size 32 --start.path runs/simclr --start.freeze all
"""

from descend.data.images.shape_scenes import ShapeScenes
from descend.data.images.views import Viewing
from descend.engine.loop import Loop
from descend.kinds.self_supervised import EmbedSimCLR
from descend.models.contrastive_encoder import ContrastiveEncoderConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = EmbedSimCLR(
    about="SimCLR on generated scenes without labels, judged by a linear probe (your images: --data.path FOLDER)",
    parameters=91_344,
    takes="8 min",
    model=ContrastiveEncoderConfig(),
    data=ShapeScenes(count=8000, valid=0.1, test=0.1),
    views=Viewing(1.0, 0.5, turn=180.0, shift=0.15, zoom=0.2, colour=0.1, balance=0.15, grey=0.0, light=0.3),
    tau=0.1,
    known=4000,
    optim=AdamW(lr=2e-3, weight_decay=0.01),
    schedule=Cosine(warmup=50, floor=0.01),
    loop=Loop(steps=1500, batch=128, eval_every=500, save_every=500, watch="max probe"),
)
