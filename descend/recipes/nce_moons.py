"""nce-moons: an energy network of two moons that learns its own normaliser, by telling points from noise."""

from descend.engine.loop import Loop
from descend.kinds.densities import Plane
from descend.kinds.energies import ContrastPoints
from descend.models.energy_network import EnergyNetworkConfig
from descend.optim.rules import Adam
from descend.optim.schedules import Cosine

RECIPE = ContrastPoints(
    about="an energy-based model of two moons by noise-contrastive estimation, with a learned log-normaliser",
    parameters=33_537,
    takes="30 s",
    model=EnergyNetworkConfig(),
    data=Plane(),
    optim=Adam(lr=2e-3),
    schedule=Cosine(warmup=100),
    loop=Loop(steps=4000, batch=1024, ema=0.99, eval_every=500, save_every=1000, watch="min nll"),
)
