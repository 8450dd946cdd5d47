"""mlp-wine: three cultivars of wine told apart by 13 chemical measurements. The data ships with scikit-learn."""

from descend.data.tables.source import Table
from descend.engine.loop import Loop
from descend.kinds.table import LearnTable
from descend.models.mlp import MLPConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = LearnTable(
    about="a multilayer perceptron on 178 wines: three cultivars by 13 measurements",
    parameters=547,
    takes="3 s",
    model=MLPConfig(hidden=(32,)),
    data=Table(embedded="wine", valid=0.2, test=0.2),
    optim=AdamW(lr=3e-3, weight_decay=0.1),
    schedule=Cosine(warmup=20),
    loop=Loop(steps=300, batch=32, ema=0.98, eval_every=20, save_every=100, watch="min loss"),
)
