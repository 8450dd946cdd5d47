"""denoising-ae-digits: spoilt digits in, clean digits out."""

from descend.data.images.digits import Digits
from descend.engine.loop import Loop
from descend.kinds.autoencode_images import AutoencodeImages, Spoiling
from descend.models.autoencoder import AutoencoderConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = AutoencodeImages(
    about="a denoising autoencoder of digits (--corruption.kind gaussian, masking or salt-and-pepper)",
    parameters=66_176,
    takes="10 s",
    model=AutoencoderConfig(hidden=(256,), latent=64, output="sigmoid"),
    data=Digits(),
    corruption=Spoiling("gaussian", 0.3),
    optim=AdamW(lr=2e-3, weight_decay=0.01),
    schedule=Cosine(warmup=50, floor=0.01),
    loop=Loop(steps=2000, batch=64, eval_every=200, save_every=1000),
)
