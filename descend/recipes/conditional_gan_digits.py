"""conditional-gan-digits: one asks for a digit and gets it: descend sample RUN --class 7."""

from descend.engine.loop import Loop
from descend.kinds.adversarial_images import AdversarialImages
from descend.kinds.game import Game, Players
from descend.models.conditional_gan import ConditionalGANConfig
from descend.optim.rules import Adam
from descend.optim.schedules import Linear

RECIPE = AdversarialImages(
    about="a conditional GAN on digits: how often the digit asked for is the one that is read",
    parameters=89_152,
    takes="2 min",
    model=ConditionalGANConfig(latent=16, width=256, depth=2),
    optim=Players(d=Adam(lr=5e-4, betas=(0.5, 0.999)), g=Adam(lr=5e-4, betas=(0.5, 0.999))),
    schedule=Linear(),
    game=Game(r1=0.2),
    loop=Loop(steps=5000, batch=64, ema=0.99, eval_every=500, save_every=1000, watch="max right"),
)
