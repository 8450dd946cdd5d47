"""Recipes of flows on points in the plane: by maximum likelihood, and by flow matching."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor

from descend.contracts import Exhibit
from descend.errors import Mistake
from descend.kinds.densities import GeneratePoints, PointSplits
from descend.kinds.generate_images import Learner
from descend.models import config_class, make_model
from descend.ops.ode.divergence import draw_signs
from descend.ranges import Fraction
from descend.tasks.density import EstimatedLikelihood, MaximumLikelihood
from descend.tasks.flow_matching import MatchDensity
from descend.views.densities import show_field, show_stages

PLANE = 2
MOMENTS = (0.0, 0.5, 0.9)  # times at which a velocity field is shown


@dataclass(frozen=True)
class FlowPoints(GeneratePoints):
    """A flow trained by maximum likelihood: RealNVP, spline flow, MAF, IAF."""

    model: Any = field(default_factory=lambda: config_class("realnvp")())

    def assemble(self, points: PointSplits) -> Learner:
        model = make_model(fit_plane(self.model))
        return Learner(MaximumLikelihood(model, points.log_scale), model, {"model": self.optim})

    def log_density(self, model: Any) -> Callable[[Tensor], Tensor] | None:
        return lambda x: model.log_prob(x)

    def exhibits(self, model: Any, points: PointSplits) -> list[Exhibit]:
        """Also how the layers make points of noise."""
        return [*super().exhibits(model, points), *show_stages(model.stages)]


@dataclass(frozen=True)
class ContinuousPoints(GeneratePoints):
    """A continuous flow trained by maximum likelihood, with the exact trace or an estimate."""

    model: Any = field(default_factory=lambda: config_class("cnf")())
    trace: Literal["exact", "signs", "gaussian"] = "exact"
    """In training: exact by D reverse passes, or Hutchinson's estimate by one, with noise of ±1 or Gaussian noise."""

    def assemble(self, points: PointSplits) -> Learner:
        model = make_model(fit_plane(self.model))
        task = MaximumLikelihood if self.trace == "exact" else EstimatedLikelihood
        return Learner(task(model, points.log_scale), model, {"model": self.optim})

    def draw(self, random: torch.Generator, n: int) -> dict[str, Tensor]:
        """ε, a fresh one for each point."""
        if self.trace == "exact":
            return {}
        if self.trace == "signs":
            return {"eps": draw_signs(torch.rand(n, PLANE, generator=random))}
        return {"eps": torch.randn(n, PLANE, generator=random)}

    def log_density(self, model: Any) -> Callable[[Tensor], Tensor] | None:
        return lambda x: model.log_prob(x)

    def exhibits(self, model: Any, points: PointSplits) -> list[Exhibit]:
        """Also the velocity field."""
        return [*super().exhibits(model, points), *show_velocity(model, points)]


@dataclass(frozen=True)
class MatchPoints(GeneratePoints):
    """A velocity field trained by flow matching; scored by its likelihood as a continuous flow."""

    model: Any = field(default_factory=lambda: config_class("flow_matching")())
    sigma: Fraction = 0.0
    """Width that is left of the noise at t = 1; 0: straight lines that end at the data."""

    def assemble(self, points: PointSplits) -> Learner:
        model = make_model(fit_plane(self.model))
        return Learner(MatchDensity(model, self.sigma, points.log_scale), model, {"model": self.optim})

    def draw(self, random: torch.Generator, n: int) -> dict[str, Tensor]:
        """Where a path starts, and the time at which it is looked at."""
        return {"noise": torch.randn(n, PLANE, generator=random), "t": torch.rand(n, generator=random)}

    def log_density(self, model: Any) -> Callable[[Tensor], Tensor] | None:
        return lambda x: model.log_prob(x)

    def exhibits(self, model: Any, points: PointSplits) -> list[Exhibit]:
        """Also the velocity field."""
        return [*super().exhibits(model, points), *show_velocity(model, points)]


def show_velocity(model: Any, points: PointSplits) -> list[Exhibit]:
    """The velocity field at some times, over the data."""
    fields = ((t, lambda x, t=t: model.velocity(x, t)) for t in MOMENTS)
    return [show_field(velocity, points.box, f"Velocity at t = {t:g}", points.valid) for t, velocity in fields]


def fit_plane(config: Any) -> Any:
    """The config for points in the plane."""
    if config.size != PLANE:
        raise Mistake(f"--model.size {config.size}: points in the plane have {PLANE} numbers; leave this flag out")
    return replace(config, size=PLANE)
