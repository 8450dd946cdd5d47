"""stylegan-digits: styles and noise make digits of 16×16; coarse and fine styles of two digits can be mixed."""

from descend.data.images.digits import Digits
from descend.engine.loop import Loop
from descend.kinds.adversarial_images import AdversarialImages
from descend.kinds.game import Game, Players
from descend.models.stylegan import StyleGANConfig
from descend.optim.rules import Adam
from descend.optim.schedules import Constant

RECIPE = AdversarialImages(
    about="a small StyleGAN on enlarged digits: mapping network, AdaIN, noise, mixing",
    parameters=50_161,
    takes="6 min",
    model=StyleGANConfig(latent=32, style=32, mapping=4, channels=1, side=16, width=32, total=128),
    data=Digits(size=16),
    optim=Players(d=Adam(lr=1e-3, betas=(0.0, 0.99)), g=Adam(lr=1e-3, betas=(0.0, 0.99))),
    schedule=Constant(),
    game=Game("non-saturating", r1=1.0),
    loop=Loop(steps=2000, batch=32, ema=0.99, eval_every=500, save_every=1000, watch="min distance"),
)
