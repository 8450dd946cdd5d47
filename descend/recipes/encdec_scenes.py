"""encdec-scenes: an encoder-decoder without skips on generated scenes; loses the detail that a U-Net keeps."""

from descend.data.images.masks import Masks
from descend.engine.loop import Loop
from descend.kinds.segment import SegmentImages
from descend.models.conv_encoder_decoder import ConvEncoderDecoderConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = SegmentImages(
    about="an encoder-decoder without skip connections segments generated scenes: compare unet-scenes",
    parameters=435_159,
    takes="6 min",
    model=ConvEncoderDecoderConfig(width=16, depth=3, norm="batch"),
    data=Masks(),
    optim=AdamW(lr=1e-2, weight_decay=0.01),
    schedule=Cosine(warmup=50, floor=0.01),
    dice=0.5,
    loop=Loop(steps=2000, batch=16, clip=1.0, eval_every=100, save_every=500, watch="max mean_iou"),
)
