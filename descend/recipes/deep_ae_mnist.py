"""deep-ae-mnist: a deep autoencoder with 30 codes on MNIST: --data.path FOLDER of its IDX files, else embedded digits.

Hinton and Salakhutdinov (2006) report a squared error of 3.00 for each test image, and 13.87 for PCA of 30
components. They had to train the layers one by one before; weights of He's variance do as well here. With torch's own,
which shrink the signal layer by layer, 1000 steps lead to 16 on validation images, with He's to 6; ELU and a higher
learning rate, which He's weights bear, do the rest.
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
    takes="4 min",
    model=AutoencoderConfig(activation="elu", output="sigmoid"),
    start="he",
    data=Digits(size=28, valid=0.05),
    optim=AdamW(lr=3e-3, weight_decay=0.0),
    schedule=Cosine(warmup=300, floor=0.005),
    loop=Loop(steps=12_000, batch=256, clip=1.0, eval_every=1000, save_every=3000, watch="min squared_error"),
)
