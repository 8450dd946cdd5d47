"""jepa-scenes: I-JEPA learns what shapes look like by foreseeing what it will say of hidden parts of a scene.

descend train jepa-scenes --out runs/jepa
descend train cnn-images --data.size 32 --start.path runs/jepa --start.freeze all
"""

from descend.data.images.jepa_blocks import TargetBlocks
from descend.data.images.shape_scenes import ShapeScenes
from descend.data.images.views import Viewing
from descend.engine.loop import Loop
from descend.kinds.jepa import PredictBlocks, PredictorSizes
from descend.models.ijepa import IJepaConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = PredictBlocks(
    about="I-JEPA on generated scenes without labels, judged by a linear probe (your images: --data.path FOLDER)",
    parameters=207_296,
    takes="10 min",
    model=IJepaConfig(side=32, patch=4, width=64, depth=4, heads=4, hidden=256, eps=1e-6),
    data=ShapeScenes(count=8000, valid=0.1, test=0.1),
    views=Viewing(crop=1.0, flip=0.5, turn=180.0, colour=0.3, balance=0.3, grey=0.0),
    blocks=TargetBlocks(count=4, height=3, width=3),
    predictor=PredictorSizes(width=48, depth=2, heads=4),
    momentum=0.99,
    known=4000,
    optim=AdamW(lr=1e-3, betas=(0.9, 0.98), weight_decay=0.05),
    schedule=Cosine(warmup=100, floor=0.01),
    loop=Loop(steps=2000, batch=128, clip=1.0, eval_every=500, save_every=500, watch="max probe"),
)
