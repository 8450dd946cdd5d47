"""ebm-moons: an energy network of two moons, trained by persistent chains of Langevin dynamics."""

from descend.engine.loop import Loop
from descend.kinds.densities import Plane
from descend.kinds.energies import Divergence, EnergyPoints
from descend.models.energy_network import EnergyNetworkConfig
from descend.optim.rules import Adam
from descend.optim.schedules import Cosine

RECIPE = EnergyPoints(
    about="an energy-based model of two moons by persistent contrastive divergence; Z is integrated on a grid",
    parameters=33_536,
    takes="3 min",
    model=EnergyNetworkConfig(),
    data=Plane(),
    divergence=Divergence(),
    optim=Adam(lr=1e-3, betas=(0.9, 0.99)),
    schedule=Cosine(warmup=100),
    loop=Loop(steps=3000, batch=512, ema=0.995, clip=1.0, eval_every=500, save_every=1000, watch="min nll"),
)
