"""yolo-v1-scenes: one regression from the whole image to the boxes of a 7 × 7 grid, as the first YOLO did it."""

from descend.data.detection.augment import ObjectAugment
from descend.data.detection.source import DetectionSource
from descend.engine.loop import Loop
from descend.kinds.detect import DetectObjects
from descend.losses.detection.yolo_v1 import YoloV1Loss
from descend.models.yolo_v1 import YoloV1Config
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = DetectObjects(
    about="YOLOv1 on generated scenes: 7 × 7 cells of two boxes and one class (or --data.path FOLDER)",
    parameters=1_913_344,
    takes="3 min",
    model=YoloV1Config(
        image=(3, 112, 112),
        widths=(16, 32, 48, 64, 96, 32),
        kernels=(3, 3, 3, 3, 3, 1),
        strides=(2, 2, 2, 1, 2, 1),
        pools=(1, 1, 1, 1, 1, 1),
        hidden=768,
        dropout=0.0,
        norm="batch",
    ),
    loss=YoloV1Loss(),
    data=DetectionSource(size=112, scenes=6000, augment=ObjectAugment(flip=0.5, shift=0.1)),
    optim=AdamW(lr=3e-3, weight_decay=0.05),
    schedule=Cosine(warmup=100, floor=0.01),
    loop=Loop(steps=5000, batch=16, clip=10.0, eval_every=1000, save_every=1000, watch="max map"),
)
