"""rt-detr-scenes: a small RT-DETR finds the shapes of generated scenes, from queries that the image offers."""

from descend.data.detection.augment import ObjectAugment
from descend.data.detection.source import DetectionSource
from descend.engine.loop import Loop
from descend.kinds.detect import DetectObjects
from descend.losses.detection.varifocal import VarifocalSetPrediction
from descend.models.rt_detr import RTDetrConfig
from descend.models.rt_detr_resnet import RTDetrResNetConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = DetectObjects(
    about="RT-DETR finds the shapes of generated scenes, without suppression (or --data.path FOLDER)",
    parameters=735_184,
    takes="4 min",
    model=RTDetrConfig(
        backbone=RTDetrResNetConfig(stem=16, widths=(16, 32, 64, 96), depths=(1, 1, 1, 1), block="basic"), norm="batch",
        width=64, heads=4, hidden=128, expansion=0.5, queries=24, decoder_width=64, decoder_depth=3, decoder_heads=4,
        decoder_hidden=128, denoising=1,
    ),
    loss=VarifocalSetPrediction(groups=2),
    data=DetectionSource(scenes=6000, augment=ObjectAugment(flip=0.5)),
    optim=AdamW(lr=1e-3, weight_decay=1e-3),
    schedule=Cosine(warmup=200, floor=0.01),
    loop=Loop(steps=2000, batch=16, clip=1.0, eval_every=500, save_every=500, watch="max map"),
)  # fmt: skip
