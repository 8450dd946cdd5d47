"""vae-mnist: a variational autoencoder on MNIST in black and white: --data.path FOLDER of its IDX files.

Pixels are drawn anew each time with their grey value as probability (dynamic binarisation), in the test once. The test
reports nll by 200 importance samples. pythae's VAE reaches 89.8 nats.
"""

from descend.data.images.digits import Digits
from descend.engine.loop import Loop
from descend.kinds.variational_images import EvidenceBound, VariationalImages
from descend.models.vae import VAEConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = VariationalImages(
    about="a VAE for MNIST in black and white, judged by its likelihood (--data.path FOLDER of the IDX files)",
    parameters=1_234_664,
    takes="15 min",
    model=VAEConfig(hidden=(500, 400), latent=40),
    data=Digits(size=28, valid=0.05),
    bound=EvidenceBound(binarise="dynamic"),
    optim=AdamW(lr=1.5e-3, weight_decay=0.0),
    schedule=Cosine(warmup=500, floor=0.005),
    loop=Loop(steps=50_000, batch=128, clip=0.0, eval_every=2500, save_every=9000, watch="min loss"),
)
