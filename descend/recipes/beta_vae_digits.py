"""beta-vae-digits: more weight on the KL, β = 4: a simpler code, and reconstructions that are less sharp."""

from descend.data.images.digits import Digits
from descend.engine.loop import Loop
from descend.kinds.variational_images import EvidenceBound, VariationalImages
from descend.models.vae import VAEConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = VariationalImages(
    about="a beta-VAE of digits (--bound.beta: 1 is the VAE; more simplifies the code, too much collapses it)",
    parameters=53_588,
    takes="20 s",
    model=VAEConfig(hidden=(128, 128), latent=10, decoder="gaussian", variance=0.03),
    data=Digits(),
    bound=EvidenceBound(beta=4.0, warmup=200),
    optim=AdamW(lr=2e-3, weight_decay=0.0),
    schedule=Cosine(warmup=50, floor=0.01),
    loop=Loop(steps=2500, batch=64, eval_every=250, save_every=1000),
)
