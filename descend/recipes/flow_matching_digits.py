"""flow-matching-digits: small digits by flow matching with a U-Net."""

from descend.data.images.digits import Digits
from descend.engine.loop import Loop
from descend.kinds.flow_images import MatchImages
from descend.models.flow_unet import FlowUNetConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = MatchImages(
    about="images by flow matching (--data.path FOLDER; then: descend sample RUN --steps 20 --out grid.png)",
    parameters=701_345,
    takes="3 min",
    model=FlowUNetConfig(widths=(32, 64), attention=(False, True), blocks=1, head_size=16, groups=8),
    data=Digits(),
    optim=AdamW(lr=2e-3, weight_decay=0.0),
    schedule=Cosine(warmup=100, floor=0.01),
    loop=Loop(steps=2000, batch=64, ema=0.995, eval_every=500, save_every=500, clip=1.0),
)
