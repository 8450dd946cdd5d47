"""ldm-scenes: text to image in small. An autoencoder, then a denoiser of its codes, learn from captioned scenes."""

from descend.data.images.captions import Captions
from descend.engine.loop import Loop
from descend.kinds.diffuse_captions import DiffuseCaptions
from descend.kinds.latent_diffusion import DiffusionStage, FirstStage
from descend.models.autoencoder_kl import AutoencoderKLConfig
from descend.models.clip_text_model import ClipTextConfig
from descend.models.stable_diffusion_pipeline import StableDiffusionConfig
from descend.models.unet_2d_condition import UNet2DConditionConfig
from descend.ops.diffusion.plan import Plan
from descend.ops.diffusion.schedule import NoiseSchedule
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.optim.stages import InStages

RECIPE = DiffuseCaptions(
    about='text to image in small, on generated scenes; then: descend sample RUN --prompt "a red circle" --out red.png',
    parameters=3_572_571,
    takes="20 min",
    model=StableDiffusionConfig(
        vae=AutoencoderKLConfig(widths=(16, 32, 64), groups=8),
        text_encoder=ClipTextConfig(width=64, depth=2, heads=2, hidden=256),
        unet=UNet2DConditionConfig(
            widths=(64, 96), attention=(True, True), blocks=1, heads=4, context=64, linear=True, groups=8
        ),
        plan=Plan(NoiseSchedule("cosine", 1000), "v", method="ddim", steps=50, spacing="trailing"),
        guidance=3.0,
    ),
    data=Captions(count=12_000),
    first=FirstStage(AdamW(lr=1e-3, weight_decay=0.0)),
    optim=AdamW(lr=1e-3, weight_decay=0.01),
    stages=(DiffusionStage("autoencoder"), DiffusionStage("denoiser", predicts="v")),
    schedule=InStages((0.2, 0.8), Cosine(warmup=100, floor=0.01)),
    loop=Loop(steps=4000, batch=64, ema=0.999, clip=1.0, eval_every=500, save_every=500, watch="min loss"),
)
