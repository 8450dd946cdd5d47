"""detr-scenes: a small DETR finds the shapes of generated scenes as a set, without suppression."""

from descend.data.detection.source import DetectionSource
from descend.engine.loop import Loop
from descend.kinds.detect import DetectObjects
from descend.losses.detection.set_prediction import SetPrediction
from descend.models.detr import DetrConfig
from descend.models.resnet import ResNetConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = DetectObjects(
    about="DETR finds the shapes of generated scenes as a set, without suppression (or --data.path FOLDER)",
    parameters=893_003,
    takes="25 min",
    model=DetrConfig(
        backbone=ResNetConfig(stem=32, widths=(32, 64, 128), depths=(1, 1, 1), block="basic"), norm="batch", queries=16,
        width=96, depth=2, decoder_depth=3, heads=4, decoder_heads=4, hidden=256, decoder_hidden=256, dropout=0.0,
    ),
    loss=SetPrediction(no_object=0.2),
    data=DetectionSource(),
    optim=AdamW(lr=7e-4, weight_decay=1e-3),
    schedule=Cosine(warmup=200, floor=0.01),
    loop=Loop(steps=8000, batch=16, clip=1.0, eval_every=500, save_every=500, watch="max map"),
)  # fmt: skip
