"""yolo-v3-scenes: anchors on three grids and independent classes, on a small Darknet with residual units."""

from descend.data.detection.source import DetectionSource
from descend.engine.loop import Loop
from descend.kinds.detect import DetectObjects
from descend.losses.detection.yolo_v3 import YoloV3Loss
from descend.models.yolo_v3 import YoloV3Config
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = DetectObjects(
    about="YOLOv3 on generated scenes: anchors on three grids (or --data.path FOLDER)",
    parameters=457_618,
    takes="8 min",
    model=YoloV3Config(
        stem=8,
        widths=(16, 24, 48, 64, 96),
        depths=(1, 1, 2, 2, 1),
        anchors=(25.0, 25.0, 31.0, 31.0, 37.0, 37.0, 43.0, 43.0, 50.0, 50.0, 60.0, 60.0),
    ),
    loss=YoloV3Loss(),
    data=DetectionSource(),
    optim=AdamW(lr=2e-3, weight_decay=0.05),
    schedule=Cosine(warmup=50, floor=0.01),
    loop=Loop(steps=3000, batch=16, clip=10.0, eval_every=250, save_every=250, watch="max map"),
)
