"""vae-digits: a variational autoencoder of small digits, with convolutions."""

from descend.data.images.digits import Digits
from descend.engine.loop import Loop
from descend.kinds.variational_images import VariationalImages
from descend.models.conv_vae import ConvVAEConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = VariationalImages(
    about="a variational autoencoder of digits (--data.path FOLDER; then: descend sample RUN)",
    parameters=136_597,
    takes="30 s",
    model=ConvVAEConfig(maps=(32, 64), hidden=128, latent=10, decoder="gaussian", variance=0.03),
    data=Digits(),
    optim=AdamW(lr=2e-3, weight_decay=0.0),
    schedule=Cosine(warmup=50, floor=0.01),
    loop=Loop(steps=2500, batch=64, eval_every=250, save_every=1000, ema=0.99),
)
