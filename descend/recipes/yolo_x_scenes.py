"""yolo-x-scenes: no anchors, a decoupled head, and points that objects take by their cost (SimOTA)."""

from descend.data.detection.source import DetectionSource
from descend.engine.loop import Loop
from descend.kinds.detect import DetectObjects
from descend.losses.detection.points import PointLoss
from descend.models.yolo_x import YoloXConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = DetectObjects(
    about="YOLOX on generated scenes: a decoupled head and SimOTA (or --data.path FOLDER)",
    parameters=586_449,
    takes="9 min",
    model=YoloXConfig(widths=(16, 24, 32, 64, 96), depths=(1, 1, 1, 1), head_width=48),
    loss=PointLoss(),
    data=DetectionSource(),
    optim=AdamW(lr=2e-3, weight_decay=0.05),
    schedule=Cosine(warmup=50, floor=0.01),
    loop=Loop(steps=3000, batch=16, clip=10.0, eval_every=250, save_every=250, watch="max map"),
)
