"""mlp-csv: a multilayer perceptron on your own table: --data.path FILE.csv --data.target COLUMN."""

from descend.data.tables.source import Table
from descend.engine.loop import Loop
from descend.kinds.table import LearnTable
from descend.models.mlp import MLPConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = LearnTable(
    about="a multilayer perceptron on your own CSV (--data.path FILE --data.target COLUMN); default: house prices",
    parameters=71_681,
    takes="10 s",
    model=MLPConfig(hidden=(256, 256)),
    data=Table(),
    optim=AdamW(lr=3e-3, weight_decay=0.3),
    schedule=Cosine(warmup=50, floor=0.01),
    loop=Loop(steps=2000, batch=256, ema=0.99, eval_every=50, save_every=250, watch="min loss"),
)
