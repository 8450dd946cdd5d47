"""cnf-moons: a continuous normalizing flow on two moons, its ODE solved by Dormand-Prince, its trace exact."""

from descend.engine.loop import Loop
from descend.kinds.densities import Plane
from descend.kinds.flows import ContinuousPoints
from descend.models.cnf import CNFConfig
from descend.optim.rules import Adam
from descend.optim.schedules import Cosine

RECIPE = ContinuousPoints(
    about="continuous normalizing flow on two moons (--trace signs, --model.gradient adjoint): density, velocity",
    parameters=8_706,
    takes="3 min",
    model=CNFConfig(width=64, depth=3),
    data=Plane(valid=1000),
    optim=Adam(lr=3e-3),
    schedule=Cosine(warmup=50),
    loop=Loop(steps=2000, batch=256, clip=1.0, ema=0.99, eval_every=250, watch="min nll", compile="off"),
)
