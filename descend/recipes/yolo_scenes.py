"""yolo-scenes: a small detector without anchors finds the shapes of generated scenes, or the objects of your folder."""

from descend.data.detection.augment import ObjectAugment
from descend.data.detection.source import DetectionSource
from descend.engine.loop import Loop
from descend.kinds.detect import DetectObjects
from descend.losses.detection.task_aligned import TaskAligned
from descend.models.yolo_v8 import YoloV8Config
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = DetectObjects(
    about="YOLO (v8 form) finds the shapes of generated scenes (or --data.path FOLDER: COCO, YOLO or VOC)",
    parameters=577_642,
    takes="6 min",
    model=YoloV8Config(widths=(16, 24, 32, 64, 96), depths=(1, 1, 1, 1), neck=1, bins=8),
    loss=TaskAligned(),
    data=DetectionSource(scenes=6000, augment=ObjectAugment(flip=0.5)),
    optim=AdamW(lr=2e-3, weight_decay=0.05),
    schedule=Cosine(warmup=50, floor=0.01),
    loop=Loop(steps=4000, batch=16, clip=10.0, eval_every=500, save_every=500, watch="max map"),
)
