"""spline-moons: four coupling layers with rational-quadratic splines, which can tear one cloud into two."""

from descend.engine.loop import Loop
from descend.kinds.densities import Plane
from descend.kinds.flows import FlowPoints
from descend.models.spline_flow import SplineFlowConfig
from descend.optim.rules import Adam
from descend.optim.schedules import Cosine

RECIPE = FlowPoints(
    about="spline coupling flow on two moons: monotone rational-quadratic functions instead of affine ones",
    parameters=23_132,
    takes="20 s",
    model=SplineFlowConfig(couplings=4, pieces=8, bound=4.0, width=64, depth=2),
    data=Plane(),
    optim=Adam(lr=2e-3),
    schedule=Cosine(warmup=100),
    loop=Loop(steps=4000, batch=256, clip=1.0, ema=0.999, eval_every=500, save_every=1000, watch="min nll"),
)
