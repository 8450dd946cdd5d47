"""gan-mixture: a generator and a discriminator play on a ring of eight Gaussians; every lost mode shows."""

from descend.engine.loop import Loop
from descend.kinds.game import Players
from descend.kinds.mixture import AdversarialPoints, Points
from descend.models.gan import GANConfig
from descend.optim.rules import Adam
from descend.optim.schedules import Linear

RECIPE = AdversarialPoints(
    about="a GAN on a ring of 8 Gaussians: modes covered and share of high-quality samples",
    parameters=17_154,
    takes="40 s",
    model=GANConfig(latent=2, width=128, depth=2),
    data=Points(),
    optim=Players(d=Adam(lr=2e-3, betas=(0.5, 0.999)), g=Adam(lr=2e-3, betas=(0.5, 0.999))),
    schedule=Linear(),
    loop=Loop(steps=6000, batch=256, ema=0.99, eval_every=500, save_every=1000, watch="max overlap"),
)
