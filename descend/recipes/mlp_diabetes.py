"""mlp-diabetes: progression of the disease after a year, from ten measurements. The data ships with scikit-learn."""

from descend.data.tables.source import Table
from descend.engine.loop import Loop
from descend.kinds.table import LearnTable
from descend.models.mlp import MLPConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = LearnTable(
    about="a multilayer perceptron on 442 patients: progression of diabetes, a regression",
    parameters=209,
    takes="3 s",
    model=MLPConfig(hidden=(16,), activations=("tanh",)),
    data=Table(embedded="diabetes", valid=0.2, test=0.2, categories=("sex",)),
    optim=AdamW(lr=3e-3, weight_decay=0.3),
    schedule=Cosine(warmup=20),
    loop=Loop(steps=400, batch=32, ema=0.98, eval_every=20, save_every=100, watch="min loss"),
)
