"""flow-matching-mnist: MNIST by flow matching: --data.path FOLDER of its IDX files, else the embedded digits."""

from descend.data.images.digits import Digits
from descend.engine.loop import Loop
from descend.kinds.flow_images import MatchImages
from descend.models.flow_unet import FlowUNetConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = MatchImages(
    about="MNIST by flow matching (--data.path FOLDER of the IDX files; else the embedded digits)",
    parameters=1_112_801,
    takes="25 min",
    model=FlowUNetConfig(widths=(32, 64, 64), attention=(False, False, True), blocks=1, head_size=16, groups=8),
    data=Digits(size=28, valid=0.05),
    optim=AdamW(lr=1e-3, weight_decay=0.0),
    schedule=Cosine(warmup=200, floor=0.01),
    loop=Loop(steps=3000, batch=64, ema=0.999, eval_every=1000, save_every=500, clip=1.0),
)
