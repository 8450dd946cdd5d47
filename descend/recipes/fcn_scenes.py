"""fcn-scenes: a small FCN-8s finds the shapes in generated scenes; coarser at the edges than a U-Net."""

from descend.data.images.masks import Masks
from descend.engine.loop import Loop
from descend.kinds.segment import SegmentImages
from descend.models.fcn import FCNConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = SegmentImages(
    about="FCN-8s with a small backbone segments generated scenes (or your own: --data.path FOLDER)",
    parameters=637_861,
    takes="4 min",
    model=FCNConfig(
        widths=(16, 32, 64, 96, 128), convs=(2, 2, 2, 2, 2), hidden=128, kernel=3, stride=8, dropout=0.0, norm="batch"
    ),
    data=Masks(),
    optim=AdamW(lr=1e-2, weight_decay=0.01),
    schedule=Cosine(warmup=50, floor=0.01),
    dice=0.5,
    loop=Loop(steps=2000, batch=16, clip=1.0, eval_every=100, save_every=500, watch="max mean_iou"),
)
