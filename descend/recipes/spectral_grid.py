"""spectral-grid: hinge loss and spectral norms teach a generator a grid of 25 Gaussians."""

from descend.engine.loop import Loop
from descend.kinds.game import Game, Players
from descend.kinds.mixture import AdversarialPoints, Points
from descend.models.gan import GANConfig
from descend.optim.rules import Adam
from descend.optim.schedules import Linear

RECIPE = AdversarialPoints(
    about="a GAN with hinge loss and spectral norms on a grid of 25 Gaussians",
    parameters=33_666,
    takes="4 min",
    model=GANConfig(latent=2, width=128, depth=3),
    data=Points("grid", modes=25, radius=4.0, sigma=0.05),
    optim=Players(d=Adam(lr=2e-3, betas=(0.0, 0.9)), g=Adam(lr=2e-3, betas=(0.0, 0.9))),
    schedule=Linear(),
    game=Game("hinge", d_moves=2, norm="spectral"),
    loop=Loop(steps=9000, batch=512, ema=0.99, eval_every=500, save_every=1000, watch="max overlap"),
)
