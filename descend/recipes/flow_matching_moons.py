"""flow-matching-moons: a velocity field learned on straight paths from noise to two moons, without solving an ODE."""

from descend.engine.loop import Loop
from descend.kinds.densities import Plane
from descend.kinds.flows import MatchPoints
from descend.models.flow_matching import FlowMatchingConfig
from descend.optim.rules import Adam
from descend.optim.schedules import Cosine

RECIPE = MatchPoints(
    about="flow matching on two moons (descend sample RUN --method euler --steps 20): samples, density, velocity field",
    parameters=133_122,
    takes="2 min",
    model=FlowMatchingConfig(width=256, depth=3),
    data=Plane(valid=1000),
    optim=Adam(lr=2e-3),
    schedule=Cosine(warmup=100),
    loop=Loop(steps=10_000, batch=512, clip=1.0, ema=0.999, eval_every=1000, save_every=1000, watch="min nll"),
)
