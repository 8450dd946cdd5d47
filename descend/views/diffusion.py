"""What a diffusion model shows: a film of denoising, how images drown in noise, its error by noise, fields and paths.

    the field that a sampler follows at time t:  x̂_0(x, t) − x, from a noisy point to the data it is taken for

Systems: denoising-vector-field, noise-schedules, ddpm-sampler
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from descend.contracts import Exhibit, Wish
from descend.data.images.labelled import Preprocessing, Splits
from descend.data.toys.densities import Box
from descend.ops.diffusion.kernels import add_noise
from descend.ops.diffusion.plan import Plan
from descend.ops.diffusion.prediction import estimate, target_of
from descend.ops.diffusion.schedule import NoiseSchedule
from descend.sampling.chance import PerExample
from descend.sampling.diffusion.denoiser import Predict
from descend.sampling.diffusion.grid import SCALED, make_grid
from descend.sampling.diffusion.samplers import walk
from descend.views.densities import find_device, show_field
from descend.views.pixels import channels_last
from descend.views.samples import first_images

ROWS, FRAMES, COMPARED, PATHS = 4, 10, 128, 200
SEED = 0


class Sampled(Protocol):
    """A pipeline that denoises images."""

    @property
    def plan(self) -> Plan: ...

    @property
    def shape(self) -> tuple[int, int, int]: ...

    def predictor(self, count: int, wish: Wish) -> Predict: ...


@torch.no_grad()
def record_film(model: Sampled, count: int = ROWS, frames: int = FRAMES, seed: int = SEED) -> tuple[Tensor, list[int]]:
    """x_t of some samples at evenly chosen steps, the noise first and the image last (count, frames, ..), and the steps
    taken until each."""
    chance = PerExample(seed, count, device=find_device(model))
    shape, plan = model.shape, model.plan
    noise = lambda: chance.normal(*shape)
    x = noise()
    seen = [x]
    abar = make_grid(plan).abar[1:].tolist()
    for level, found in zip(abar, walk(model.predictor(count, Wish()), x, plan, noise), strict=True):
        seen.append(found * level**0.5 if plan.method in SCALED else found)
    steps = torch.linspace(0, len(seen) - 1, min(frames, len(seen))).round().long().tolist()
    return torch.stack([seen[step] for step in steps], 1), steps


def show_film(model: Sampled, prepare: Preprocessing) -> Exhibit:
    """From noise to images, a sample in each row."""
    film, steps = record_film(model)
    rows = prepare.restore(film.flatten(0, 1).cpu()).unflatten(0, film.shape[:2])
    captions = [f"sample {i}" for i in range(len(rows))]
    told = ", ".join(map(str, steps))
    content = {"rows": channels_last(rows), "captions": captions}
    return Exhibit("sheet", "Denoising", content, f"After {told} steps of {model.plan.method}.")


def show_noising(splits: Splits, prepare: Preprocessing, own: NoiseSchedule) -> Exhibit:
    """One image under more and more noise, by the run's schedule and by the linear and cosine ones."""
    x = prepare.standardize(first_images(splits.valid, 1))
    eps = torch.randn(x.shape, generator=torch.Generator().manual_seed(SEED))
    schedules = {"this run": own, "linear": NoiseSchedule("linear"), "cosine": NoiseSchedule("cosine")}
    strips = torch.stack([prepare.restore(make_strip(x, eps, noise)) for noise in schedules.values()])
    content = {"rows": channels_last(strips), "captions": list(schedules)}
    return Exhibit("sheet", "How an image drowns in noise", content, "At equal times from 0 to T.")


def make_strip(x: Tensor, eps: Tensor, noise: NoiseSchedule, frames: int = FRAMES) -> Tensor:
    """One image x (1, ..) at evenly spaced times (frames, ..)."""
    t = torch.linspace(0, noise.steps - 1, frames).round().long()
    return add_noise(x.expand(frames, *x.shape[1:]), eps, noise.at(t, x.expand(frames, *x.shape[1:])))


@torch.no_grad()
def show_errors(model: Sampled, splits: Splits, prepare: Preprocessing) -> Exhibit:
    """The mean squared error of what is predicted, at ten levels of noise, on validation images."""
    plan, device = model.plan, find_device(model)
    x = prepare.standardize(first_images(splits.valid, COMPARED)).to(device)
    eps = torch.randn(x.shape, generator=torch.Generator().manual_seed(SEED)).to(device)
    predict = model.predictor(len(x), Wish())
    times = torch.linspace(0, plan.noise.steps - 1, FRAMES).round().long()
    errors = []
    for t in times.to(device):
        abar = plan.noise.at(t.expand(len(x)), x)
        said = predict(add_noise(x, eps, abar), t.expand(len(x)))
        errors.append(float((said - target_of(plan.predicts, x, eps, abar)).square().mean()))
    content = {"x": times.tolist(), "y": errors, "x_label": "time", "y_label": "mean squared error"}
    note = f"Of {plan.predicts}, predicted without a class for {len(x)} validation images."
    return Exhibit("curve", "Error by noise", content, note)


class PointModel(Protocol):
    """A denoiser of points."""

    @property
    def config(self) -> object: ...

    def __call__(self, x: Tensor, t: Tensor) -> Tensor: ...


@torch.no_grad()
def denoising_field(model: PointModel, plan: Plan, x: Tensor, t: int) -> Tensor:
    """x̂_0(x, t) − x: where each point would be taken to."""
    times = torch.full((len(x),), t, device=x.device)
    return estimate(plan.predicts, model(x, times), x, plan.noise.at(times, x)).x0 - x


def show_fields(model: PointModel, plan: Plan, box: Box, points: Tensor) -> list[Exhibit]:
    """The field at little, some and much noise."""
    device = find_device(model)
    shown = []
    for share, name in ((0.05, "little"), (0.25, "some"), (0.6, "much")):
        t = int(share * plan.noise.steps)
        velocity = lambda x, t=t: denoising_field(model, plan, x.to(device), t).cpu()
        shown.append(show_field(velocity, box, f"Where points are taken to: {name} noise (t = {t})", points))
    return shown


@torch.no_grad()
def record_paths(model: PointModel, plan: Plan, count: int = PATHS, seed: int = SEED) -> Tensor:
    """Points from noise to data (steps + 1, count, 2)."""
    chance = PerExample(seed, count, device=find_device(model))
    noise = lambda: chance.normal(2)
    x = noise()
    return torch.stack([x, *walk(model, x, plan, noise)]).cpu()


def show_paths(model: PointModel, plan: Plan, points: Tensor) -> Exhibit:
    """Starts, points on the way, and ends."""
    paths = record_paths(model, plan)
    half = len(paths) * 3 // 4
    content = {"data": points[:500].tolist(), "noise": paths[0].tolist(), "on the way": paths[half].tolist()}
    content["end"] = paths[-1].tolist()
    return Exhibit("points", "From noise to data", content, f"{paths.shape[1]} starts; on the way: after {half} steps.")
