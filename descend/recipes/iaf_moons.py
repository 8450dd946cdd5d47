"""iaf-moons: an inverse autoregressive flow on two moons; samples in one pass, the density coordinate by coordinate."""

from descend.engine.loop import Loop
from descend.kinds.densities import Plane
from descend.kinds.flows import FlowPoints
from descend.models.iaf import IAFConfig
from descend.optim.rules import Adam
from descend.optim.schedules import Cosine

RECIPE = FlowPoints(
    about="inverse autoregressive flow on two moons: sampling in one pass, sequential density",
    parameters=36_896,
    takes="40 s",
    model=IAFConfig(layers=8, width=64, depth=2),
    data=Plane(),
    optim=Adam(lr=2e-3),
    schedule=Cosine(warmup=100),
    loop=Loop(steps=6000, batch=256, clip=1.0, ema=0.999, eval_every=500, save_every=1000, watch="min nll"),
)
