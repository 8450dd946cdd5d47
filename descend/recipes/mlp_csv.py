"""mlp-csv: a multilayer perceptron on your own table: --data.path FILE.csv --data.target COLUMN."""

from descend.data.tables.source import Table
from descend.engine.loop import Loop
from descend.kinds.table import LearnTable
from descend.models.mlp import MLPConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = LearnTable(
    about="a multilayer perceptron on your own CSV (--data.path FILE --data.target COLUMN); default: house prices",
    parameters=5_633,
    takes="5 s",
    model=MLPConfig(hidden=(64, 64)),
    data=Table(),
    optim=AdamW(lr=3e-3, weight_decay=0.3),
    schedule=Cosine(warmup=50, floor=0.01),
    loop=Loop(steps=1000, batch=64, ema=0.98, eval_every=50, save_every=250, watch="min loss"),
)
