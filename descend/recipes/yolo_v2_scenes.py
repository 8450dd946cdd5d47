"""yolo-v2-scenes: three anchors on one grid, on a small Darknet-19."""

from descend.data.detection.augment import ObjectAugment
from descend.data.detection.source import DetectionSource
from descend.engine.loop import Loop
from descend.kinds.detect import DetectObjects
from descend.losses.detection.yolo_v2 import YoloV2Loss
from descend.models.yolo_v2 import YoloV2Config
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = DetectObjects(
    about="YOLOv2 on generated scenes: anchors on one grid (or --data.path FOLDER)",
    parameters=501_873,
    takes="6 min",
    model=YoloV2Config(
        widths=(16, 24, 48, 64, 96), repeats=(1, 1, 1, 3, 3), narrow=24, anchors=(26.0, 26.0, 33.0, 33.0, 41.0, 41.0)
    ),
    loss=YoloV2Loss(),
    data=DetectionSource(augment=ObjectAugment(multi_scale=0.34)),
    optim=AdamW(lr=2e-3, weight_decay=0.05),
    schedule=Cosine(warmup=50, floor=0.01),
    loop=Loop(steps=3000, batch=16, clip=10.0, eval_every=250, save_every=250, watch="max map"),
)
