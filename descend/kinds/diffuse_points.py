"""Diffusion models of points in the plane, with a perceptron."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from descend.contracts import Exhibit, Wish
from descend.errors import Mistake
from descend.kinds.denoising import Denoising
from descend.kinds.densities import GeneratePoints, Plane, PointSplits
from descend.kinds.generate_images import Learner
from descend.metrics.modes import Modes
from descend.models.denoiser_mlp import DenoiserConfig, DenoiserMLP
from descend.optim.rules import Adam
from descend.sampling.chance import PerExample
from descend.tasks.denoise import Denoise, draw_noise

JUDGED = 2000  # points generated to count modes


@dataclass(frozen=True)
class DiffusePoints(GeneratePoints):
    """A diffusion model of points in the plane."""

    model: DenoiserConfig = field(default_factory=DenoiserConfig)
    optim: Any = field(default_factory=Adam)
    denoising: Denoising = field(default_factory=Denoising)

    def assemble(self, points: PointSplits) -> Learner:
        if self.model.inputs != 2 or self.model.classes is not None:
            raise Mistake("--model: points of the plane have 2 inputs and no classes; leave these flags out")
        model, plan = DenoiserMLP(self.model), self.model.plan
        task = Denoise(model, plan.noise, plan.predicts, self.denoising.choose(), judge_samples=self.judge_modes(model))
        return Learner(task, model, {"model": self.optim})

    def draw(self, random: torch.Generator, n: int) -> dict[str, Tensor]:
        """Noise and times."""
        return draw_noise((2,), n, random)

    def judge_modes(self, model: DenoiserMLP) -> Callable[[], dict[str, float]] | None:
        """Modes covered and share of good points, of a mixture."""
        data: Plane = self.data
        if data.path or data.shape not in ("ring", "grid"):
            return None
        judge = Modes(data.density().mixture.mu.float(), data.noise)  # type: ignore[attr-defined]

        def found() -> dict[str, float]:
            device = next(model.parameters()).device
            made = model.generate(PerExample(0, JUDGED, device=device), Wish())
            return {name: float(values.mean()) for name, values in judge(made).items()}

        return found

    def log_density(self, model: Any) -> Callable[[Tensor], Tensor] | None:
        """By the probability flow."""
        return model.flow().log_prob if self.model.plan.noise.shape == "linear" else None

    def exhibits(self, model: Any, points: PointSplits) -> list[Exhibit]:
        """Points, density, the field that is followed at three times, and where starts lead."""
        from descend.views.diffusion import show_fields, show_paths

        plan, shown = self.model.plan, super().exhibits(model, points)
        return [*shown, *show_fields(model, plan, points.box, points.valid), show_paths(model, plan, points.valid)]
