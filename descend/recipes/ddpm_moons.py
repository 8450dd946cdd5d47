"""ddpm-moons: a diffusion model of two moons in the plane."""

from descend.engine.loop import Loop
from descend.kinds.densities import Plane
from descend.kinds.diffuse_points import DiffusePoints
from descend.models.denoiser_mlp import DenoiserConfig
from descend.ops.diffusion.plan import Plan
from descend.ops.diffusion.schedule import NoiseSchedule
from descend.optim.rules import Adam
from descend.optim.schedules import Cosine

RECIPE = DiffusePoints(
    about="a diffusion model of points in the plane (--data.shape ring, --data.path FILE.csv)",
    parameters=75_010,
    takes="1 min",
    model=DenoiserConfig(plan=Plan(noise=NoiseSchedule(steps=200, start=5e-4, end=0.1), variance="beta")),
    data=Plane(),
    optim=Adam(lr=2e-3),
    schedule=Cosine(warmup=100),
    loop=Loop(steps=4000, batch=512, ema=0.995, eval_every=1000, save_every=1000),
)
