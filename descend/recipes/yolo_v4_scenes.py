"""yolo-v4-scenes: CSP stages, paths between scales in both directions, and boxes learned by their complete IoU."""

from descend.data.detection.augment import ObjectAugment
from descend.data.detection.source import DetectionSource
from descend.engine.loop import Loop
from descend.kinds.detect import DetectObjects
from descend.losses.detection.yolo_v4 import YoloV4Loss
from descend.models.yolo_v4 import YoloV4Config
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = DetectObjects(
    about="YOLOv4 on generated scenes: CSP, PAN, CIoU and mosaic (or --data.path FOLDER)",
    parameters=597_506,
    takes="12 min",
    model=YoloV4Config(
        stem=8,
        widths=(16, 24, 48, 64, 96),
        depths=(1, 1, 1, 1, 1),
        anchors=(25.0, 25.0, 31.0, 31.0, 37.0, 37.0, 43.0, 43.0, 50.0, 50.0, 60.0, 60.0),
    ),
    loss=YoloV4Loss(),
    data=DetectionSource(augment=ObjectAugment(mosaic=0.5, close=0.3)),
    optim=AdamW(lr=2e-3, weight_decay=0.05),
    schedule=Cosine(warmup=50, floor=0.01),
    loop=Loop(steps=3000, batch=16, clip=10.0, eval_every=250, save_every=250, watch="max map"),
)
