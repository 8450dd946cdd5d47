"""yolo-images: a detector of the published nano size for your own images with boxes."""

from dataclasses import replace

from descend.data.detection.augment import ObjectAugment
from descend.data.detection.source import DetectionSource
from descend.engine.loop import Loop
from descend.kinds.detect import DetectObjects
from descend.losses.detection.task_aligned import TaskAligned
from descend.models.yolo_v8 import SIZES
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.weights.labels import Labels

RECIPE = DetectObjects(
    about="YOLO (v8 form, nano) for your own images: --data.path FOLDER in the form of COCO, YOLO or VOC",
    parameters=3_012_018,
    takes="30 min",
    model=replace(SIZES["yolo-v8-n"], labels=Labels()),
    loss=TaskAligned(),
    data=DetectionSource(
        augment=ObjectAugment(
            mosaic=0.5, close=0.2, flip=0.5, scale=0.4, shift=0.1, hue=0.015, saturation=0.5, brightness=0.3
        )
    ),
    optim=AdamW(lr=1.5e-3, weight_decay=0.05),
    schedule=Cosine(warmup=100, floor=0.01),
    loop=Loop(steps=2400, batch=8, clip=10.0, ema=0.998, eval_every=200, save_every=200, watch="max map"),
)
