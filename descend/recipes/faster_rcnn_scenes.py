"""faster-rcnn-scenes: regions are proposed, then named and moved; shapes of scenes, or objects of your folder."""

from descend.data.detection.source import DetectionSource
from descend.engine.loop import Loop
from descend.kinds.detect import DetectObjects
from descend.losses.detection.region_proposals import RegionProposalLoss
from descend.losses.detection.regions import RegionLoss, TwoStageLoss
from descend.models.faster_rcnn import FasterRCNNConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = DetectObjects(
    about="Faster R-CNN in two stages finds the shapes of generated scenes (or --data.path FOLDER: COCO, YOLO or VOC)",
    parameters=491_338,
    takes="2 min",
    model=FasterRCNNConfig(
        stem=24,
        widths=(32, 64, 96),
        depths=(1, 1, 1),
        block="basic",
        pyramid=48,
        hidden=128,
        grid=5,
        sizes=(16.0, 24.0, 32.0, 48.0),
        canonical=96.0,
        candidates=100,
        proposals=50,
    ),
    loss=TwoStageLoss(RegionProposalLoss(anchors=128), RegionLoss(regions=32)),
    data=DetectionSource(),
    optim=AdamW(lr=2e-3, weight_decay=0.05),
    schedule=Cosine(warmup=50, floor=0.01),
    loop=Loop(steps=1500, batch=16, clip=10.0, eval_every=500, save_every=500, watch="max map"),
)
