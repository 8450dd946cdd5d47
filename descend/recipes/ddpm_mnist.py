"""ddpm-mnist: a diffusion model of MNIST's digits: --data.path FOLDER of its IDX files, else the embedded digits."""

from descend.data.images.digits import Digits
from descend.engine.loop import Loop
from descend.kinds.diffusion import DiffuseImages
from descend.models.ddpm_pipeline import DDPMConfig
from descend.models.unet_2d import UNet2DConfig
from descend.ops.diffusion.plan import Plan
from descend.ops.diffusion.schedule import NoiseSchedule
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = DiffuseImages(
    about="a diffusion model for MNIST (--data.path FOLDER of the IDX files; else the embedded digits)",
    parameters=1_112_801,
    takes="25 min",
    model=DDPMConfig(
        unet=UNet2DConfig(widths=(32, 64, 64), attention=(False, False, True), blocks=1, head_size=16, groups=8),
        plan=Plan(noise=NoiseSchedule("linear", 1000), method="ddim", steps=50, clip=1.0),
    ),
    data=Digits(size=28, valid=0.05),
    optim=AdamW(lr=1e-3, weight_decay=0.0),
    schedule=Cosine(warmup=200, floor=0.01),
    loop=Loop(steps=3000, batch=64, ema=0.999, eval_every=1000, save_every=500, clip=1.0),
)
