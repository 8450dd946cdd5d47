"""student-digits: a very small CNN on handwritten digits; with --teacher.path RUN a larger network teaches it."""

from descend.data.images.digits import Digits
from descend.data.images.warp import Warp
from descend.engine.loop import Loop
from descend.kinds.taught import Teacher, TeachImages
from descend.models.typical_cnn import TypicalCNNConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = TeachImages(
    about="a very small CNN on handwritten digits, alone or taught by a larger one (--teacher.path RUN of cnn-digits)",
    parameters=1_626,
    takes="20 s",
    model=TypicalCNNConfig(widths=(4, 8), convs=1, kernel=3, hidden=(), dropout=0.0),
    data=Digits(size=16, warp=Warp(shift=0.06, turn=10.0, zoom=0.1)),
    optim=AdamW(lr=4e-3, weight_decay=0.02),
    schedule=Cosine(warmup=50, floor=0.01),
    teacher=Teacher(alpha=0.1, temperature=4.0),
    loop=Loop(steps=1000, batch=64, ema=0.99, eval_every=50, save_every=250, watch="max accuracy"),
)
