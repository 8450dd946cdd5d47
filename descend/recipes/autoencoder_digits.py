"""autoencoder-digits: handwritten digits through 8 numbers and back."""

from descend.data.images.digits import Digits
from descend.engine.loop import Loop
from descend.kinds.autoencode_images import AutoencodeImages
from descend.models.autoencoder import AutoencoderConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = AutoencodeImages(
    about="an autoencoder of digits with a code of 8 numbers (--data.path FOLDER; --sparsity, --corruption.kind)",
    parameters=34_248,
    takes="10 s",
    model=AutoencoderConfig(hidden=(128, 64), latent=8, output="sigmoid"),
    data=Digits(),
    optim=AdamW(lr=3e-3, weight_decay=0.0),
    schedule=Cosine(warmup=50, floor=0.01),
    loop=Loop(steps=2000, batch=64, eval_every=200, save_every=1000),
)
