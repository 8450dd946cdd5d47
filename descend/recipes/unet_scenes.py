"""unet-scenes: a U-Net finds the shapes in generated scenes, pixel by pixel; or the classes of your own masks."""

from descend.data.images.masks import Masks
from descend.engine.loop import Loop
from descend.kinds.segment import SegmentImages
from descend.models.unet import UNetConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = SegmentImages(
    about="U-Net segments generated scenes (or your own: --data.path FOLDER with images/ and masks/)",
    parameters=483_543,
    takes="7 min",
    model=UNetConfig(width=16, depth=3, padding=1, norm="batch"),
    data=Masks(),
    optim=AdamW(lr=1e-2, weight_decay=0.01),
    schedule=Cosine(warmup=50, floor=0.01),
    dice=0.5,
    loop=Loop(steps=3600, batch=16, clip=1.0, eval_every=200, save_every=600, watch="max mean_iou"),
)
