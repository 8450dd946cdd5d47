"""realnvp-moons: eight affine coupling layers turn a Gaussian into two moons, with exact likelihoods."""

from descend.engine.loop import Loop
from descend.kinds.densities import Plane
from descend.kinds.flows import FlowPoints
from descend.models.realnvp import RealNVPConfig
from descend.optim.rules import Adam
from descend.optim.schedules import Cosine

RECIPE = FlowPoints(
    about="RealNVP on two moons (--data.shape pinwheel, --data.path points.csv): density, samples, stages",
    parameters=35_344,
    takes="15 s",
    model=RealNVPConfig(couplings=8, width=64, depth=2),
    data=Plane(),
    optim=Adam(lr=2e-3),
    schedule=Cosine(warmup=100),
    loop=Loop(steps=6000, batch=256, clip=1.0, ema=0.999, eval_every=500, save_every=1000, watch="min nll"),
)
