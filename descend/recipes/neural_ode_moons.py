"""neural-ode-moons: a classifier whose depth an ODE solver chooses, on two moons; the report draws its boundary."""

from descend.data.tables.source import Table
from descend.engine.loop import Loop
from descend.kinds.table import LearnTable
from descend.models.neural_ode import NeuralODEConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = LearnTable(
    about="a neural ODE on two moons (--data.embedded circles, --model.method euler, --model.gradient adjoint)",
    parameters=626,
    takes="5 s",
    model=NeuralODEConfig(state=8, width=32),
    data=Table(embedded="moons"),
    optim=AdamW(lr=1e-2, weight_decay=0.01),
    schedule=Cosine(warmup=20),
    loop=Loop(steps=500, batch=64, eval_every=50, save_every=250, watch="min loss", compile="off"),
)
