"""dcgan-digits: convolutions make digits out of noise, and a network that reads digits judges them."""

from descend.engine.loop import Loop
from descend.kinds.adversarial_images import AdversarialImages
from descend.kinds.game import Game, Players
from descend.models.dcgan import DCGANConfig
from descend.optim.rules import Adam
from descend.optim.schedules import Linear

RECIPE = AdversarialImages(
    about="DCGAN on digits of 8×8: classes found and Fréchet distance by a small reader",
    parameters=41_665,
    takes="3 min",
    model=DCGANConfig(latent=32, channels=1, side=8, width=32, depth=2, kernel=4),
    optim=Players(d=Adam(lr=5e-4, betas=(0.5, 0.999)), g=Adam(lr=5e-4, betas=(0.5, 0.999))),
    schedule=Linear(),
    game=Game(),
    loop=Loop(steps=4000, batch=64, ema=0.99, eval_every=500, save_every=1000, watch="min distance"),
)
