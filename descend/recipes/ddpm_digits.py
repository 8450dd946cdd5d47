"""ddpm-digits: a diffusion model of small digits, or of a folder of images."""

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
    about="a diffusion model of digits (--data.path FOLDER; then: descend sample RUN --out grid.png)",
    parameters=701_345,
    takes="3 min",
    model=DDPMConfig(
        unet=UNet2DConfig(widths=(32, 64), attention=(False, True), blocks=1, head_size=16, groups=8),
        plan=Plan(noise=NoiseSchedule("cosine", 200), predicts="v", method="ddpm", clip=1.0),
    ),
    data=Digits(),
    optim=AdamW(lr=2e-3, weight_decay=0.0),
    schedule=Cosine(warmup=100, floor=0.01),
    loop=Loop(steps=2000, batch=64, ema=0.995, eval_every=500, save_every=500, clip=1.0),
)
