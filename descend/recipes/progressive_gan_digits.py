"""progressive-gan-digits: from 4×4 over 8×8 to 16×16, while it trains."""

from descend.data.images.digits import Digits
from descend.engine.loop import Loop
from descend.kinds.adversarial_images import GrowImages, GrowthPlan
from descend.kinds.game import Game, Players
from descend.models.progressive_gan import ProgressiveGANConfig
from descend.optim.rules import Adam
from descend.optim.schedules import Constant

RECIPE = GrowImages(
    about="a GAN that grows from 4×4 to 16×16 on enlarged digits",
    parameters=51_187,
    takes="6 min",
    model=ProgressiveGANConfig(latent=32, channels=1, side=16, width=32, total=128),
    data=Digits(size=16),
    optim=Players(d=Adam(lr=1e-3, betas=(0.0, 0.99)), g=Adam(lr=1e-3, betas=(0.0, 0.99))),
    schedule=Constant(),
    game=Game("wgan-gp"),
    growing=GrowthPlan(stay=400, fade=400),
    loop=Loop(steps=3000, batch=32, ema=0.99, eval_every=500, save_every=1000, watch="min distance"),
)
