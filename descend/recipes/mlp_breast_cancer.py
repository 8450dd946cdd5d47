"""mlp-breast-cancer: benign or malignant, from 30 measurements of cell nuclei. The data ships with scikit-learn."""

from descend.data.tables.source import Table
from descend.engine.loop import Loop
from descend.kinds.table import ClassBalance, LearnTable
from descend.models.mlp import MLPConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = LearnTable(
    about="a multilayer perceptron on 569 biopsies: benign or malignant by 30 measurements",
    parameters=1_058,
    takes="3 s",
    model=MLPConfig(hidden=(32,)),
    data=Table(embedded="breast-cancer", valid=0.2, test=0.2),
    optim=AdamW(lr=3e-3, weight_decay=0.1),
    schedule=Cosine(warmup=20),
    balance=ClassBalance(by="none"),
    loop=Loop(steps=400, batch=32, ema=0.98, eval_every=20, save_every=100, watch="min loss"),
)
