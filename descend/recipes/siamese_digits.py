"""siamese-digits: a Siamese network pulls two views of a digit together and pushes its hardest negatives apart.

descend train siamese-digits --mining hardest
"""

from descend.data.images.digits import Digits
from descend.data.images.views import Viewing
from descend.engine.loop import Loop
from descend.kinds.self_supervised import EmbedSiamese
from descend.models.contrastive_encoder import ContrastiveEncoderConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = EmbedSiamese(
    about="a Siamese network on handwritten digits without labels, with mined negatives (yours: --data.path FOLDER)",
    parameters=80_656,
    takes="1 min",
    model=ContrastiveEncoderConfig(width=16, hidden=64, outputs=32),
    data=Digits(size=12),
    views=Viewing(crop=0.8, flip=0.0, turn=15.0, shift=0.05, zoom=0.1, colour=0.3, grey=0.0),
    mining="top-k",
    k=16,
    apart=0.5,
    optim=AdamW(lr=2e-3, weight_decay=0.01),
    schedule=Cosine(warmup=20, floor=0.01),
    loop=Loop(steps=300, batch=128, eval_every=50, save_every=150, watch="max probe"),
)
