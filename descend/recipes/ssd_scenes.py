"""ssd-scenes: one pass, default boxes on four maps; the shapes of generated scenes, or the objects of your folder."""

from descend.data.detection.source import DetectionSource
from descend.engine.loop import Loop
from descend.kinds.detect import DetectObjects
from descend.losses.detection.multibox import MultiBoxLoss
from descend.models.ssd import SSDConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = DetectObjects(
    about="SSD finds the shapes of generated scenes in one pass (or --data.path FOLDER: COCO, YOLO or VOC)",
    parameters=525_072,
    takes="15 min",
    model=SSDConfig(
        convs=(1, 1, 2, 2),
        widths=(16, 32, 64, 96),
        hidden=96,
        dilation=2,
        squeeze=(48, 48),
        extras=(96, 96),
        strides=(2, 2),
        scales=(0.2, 0.3, 0.4, 0.5, 0.7),
        ratios=((2.0,), (2.0,), (2.0,), (2.0,)),
        steps=(),
        norm="batch",
    ),
    loss=MultiBoxLoss(),
    data=DetectionSource(),
    optim=AdamW(lr=2e-3, weight_decay=0.05),
    schedule=Cosine(warmup=50, floor=0.01),
    loop=Loop(steps=3000, batch=16, clip=10.0, eval_every=250, save_every=250, watch="max map"),
)
