"""guided-digits: a diffusion model of digits that can be asked for a class, by classifier-free guidance."""

from descend.data.images.digits import Digits
from descend.engine.loop import Loop
from descend.kinds.diffusion import Conditional, DiffuseImages
from descend.models.ddpm_pipeline import DDPMConfig
from descend.models.unet_2d import UNet2DConfig
from descend.ops.diffusion.plan import Plan
from descend.ops.diffusion.schedule import NoiseSchedule
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = DiffuseImages(
    about="digits by class, with guidance (then: descend sample RUN --class 7 --guidance 3 --out sevens.png)",
    parameters=702_753,
    takes="3 min",
    model=DDPMConfig(
        unet=UNet2DConfig(widths=(32, 64), attention=(False, True), blocks=1, head_size=16, groups=8),
        plan=Plan(noise=NoiseSchedule("cosine", 200), predicts="v", method="ddim", steps=50),
    ),
    data=Digits(),
    conditional=Conditional(on=True, drop=0.15),
    optim=AdamW(lr=2e-3, weight_decay=0.0),
    schedule=Cosine(warmup=100, floor=0.01),
    loop=Loop(steps=2000, batch=64, ema=0.995, eval_every=500, save_every=500, clip=1.0),
)
