"""mlp-moons: two half moons in the plane, and the boundary that a multilayer perceptron draws between them."""

from descend.data.tables.source import Table
from descend.engine.loop import Loop
from descend.kinds.table import LearnTable
from descend.models.mlp import MLPConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = LearnTable(
    about="a multilayer perceptron on two moons (--data.embedded circles, xor, factory); the report draws its boundary",
    parameters=1_218,
    takes="4 s",
    model=MLPConfig(hidden=(32, 32)),
    data=Table(embedded="moons"),
    optim=AdamW(lr=1e-2, weight_decay=0.01),
    schedule=Cosine(warmup=20),
    loop=Loop(steps=500, batch=64, eval_every=25, save_every=250, watch="min loss"),
)
