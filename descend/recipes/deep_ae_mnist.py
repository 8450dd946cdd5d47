"""deep-ae-mnist: a deep autoencoder with 30 codes on MNIST: --data.path FOLDER of its IDX files, else embedded digits.

Hinton and Salakhutdinov (2006) report a squared error of 3.00 for each test image, and 13.87 for PCA of 30
components.
"""

from descend.data.images.digits import Digits
from descend.engine.loop import Loop
from descend.kinds.autoencode_images import AutoencodeImages
from descend.models.autoencoder import AutoencoderConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = AutoencodeImages(
    about="the deep autoencoder 784-1000-500-250-30 for MNIST (--data.path FOLDER of the IDX files)",
    parameters=2_837_314,
    takes="15 min",
    model=AutoencoderConfig(output="sigmoid"),
    data=Digits(size=28, valid=0.05),
    optim=AdamW(lr=1e-3, weight_decay=0.0),
    schedule=Cosine(warmup=500, floor=0.005),
    loop=Loop(steps=18_000, batch=128, clip=1.0, eval_every=1000, save_every=3000, watch="min squared_error"),
)
