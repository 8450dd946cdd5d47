"""cnn-digits: a typical convolutional network reads handwritten digits. The data ships with scikit-learn."""

from descend.data.images.digits import Digits
from descend.data.images.warp import Warp
from descend.engine.loop import Loop
from descend.kinds.images import ClassifyImages
from descend.models.typical_cnn import TypicalCNNConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = ClassifyImages(
    about="a plain CNN on handwritten digits (or your own images: --data.path FOLDER)",
    parameters=74_954,
    takes="30 s",
    model=TypicalCNNConfig(widths=(16, 32), convs=2, kernel=3, hidden=(112,), dropout=0.2),
    data=Digits(size=16, warp=Warp(shift=0.06, turn=10.0, zoom=0.1)),
    optim=AdamW(lr=2e-3, weight_decay=0.02),
    schedule=Cosine(warmup=50, floor=0.01),
    loop=Loop(steps=1000, batch=64, ema=0.99, eval_every=50, save_every=250, watch="max accuracy"),
)
