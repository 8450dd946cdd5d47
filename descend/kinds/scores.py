"""Recipes for scores of points at several noise levels, sampled by annealed Langevin dynamics.

The points come from two Gaussians of unequal shares, far apart. Langevin dynamics at the least noisy level alone never
crosses between them, so it cannot know how many points belong to each; from level to level it can.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from descend.contracts import Exhibit, Wish
from descend.data.streams.arrays import generator
from descend.data.toys.densities import Gaussians
from descend.data.toys.mixture import Mixture
from descend.kinds.densities import VALID, GeneratePoints, PointSplits
from descend.kinds.generate_images import Learner
from descend.models.score_network import ScoreNetwork, ScoreNetworkConfig
from descend.optim.rules import Adam
from descend.ranges import Between, Count, Positive
from descend.sampling.chance import PerExample
from descend.sampling.langevin import langevin
from descend.tasks.denoising_scores import DenoisingScores
from descend.views.densities import show_field


@dataclass(frozen=True)
class TwoGaussians:
    """The points to learn: a rare and a frequent Gaussian."""

    share: Between = 0.2
    """Of the points, in the first Gaussian."""
    place: Positive = 3.0
    """The centres are (−place, −place) and (place, place)."""
    noise: Positive = 1.0
    """Width of each."""
    valid: Count = 4000
    """Points for validation, and points generated to count the modes."""
    test: Count = 10_000
    """Points of the final test."""
    shape: ClassVar[str] = "two Gaussians"
    path: ClassVar[str] = ""

    def mixture(self) -> Mixture:
        pi, place = torch.tensor([self.share, 1 - self.share]), torch.tensor([-self.place, self.place])
        return Mixture(pi, place[:, None].expand(2, 2), torch.full((2,), self.noise))

    def density(self) -> Gaussians:
        return Gaussians(self.mixture())

    def read(self) -> PointSplits:
        density = self.density()
        points = density.sample(self.valid, generator(VALID))
        return PointSplits(points, density.box, density, exact=-float(density.log_prob(points).mean()))


@dataclass(frozen=True)
class ScorePoints(GeneratePoints):
    """A noise-conditional score network."""

    model: ScoreNetworkConfig = field(default_factory=ScoreNetworkConfig)
    data: Any = field(default_factory=TwoGaussians)
    optim: Any = field(default_factory=Adam)

    def assemble(self, points: PointSplits) -> Learner:
        model = ScoreNetwork(self.model)
        task = DenoisingScores(model, lambda: judge_weights(model, self.data))
        return Learner(task, model, {"model": self.optim})

    def draw(self, random: torch.Generator, n: int) -> dict[str, Tensor]:
        """The level of each point, and the noise."""
        return {
            "level": torch.randint(self.model.levels, (n,), generator=random),
            "noise": torch.randn(n, self.model.inputs, generator=random),
        }

    def exhibits(self, model: Any, points: PointSplits) -> list[Exhibit]:
        last = len(model.sizes) - 1

        def at(level: int) -> Callable[[Tensor], Tensor]:
            return lambda x: model.score(x, level)

        levels = [(0, "the noisiest"), (last // 2, "a middle"), (last, "the least noisy")]
        fields = [show_field(at(i), points.box, f"Score at {name} level", points.valid) for i, name in levels]
        return [*super().exhibits(model, points), *fields]


@torch.no_grad()
def judge_weights(model: ScoreNetwork, data: TwoGaussians) -> dict[str, float]:
    """How far the share of points near the rare Gaussian is from the truth: annealed, and at the last level alone."""
    device, c = next(model.parameters()).device, model.config
    chance = PerExample(VALID, data.valid, device=device)
    made = model.generate(chance, Wish())
    reach = 2 * data.place * (2 * chance.uniform(c.inputs) - 1)
    last = len(model.sizes) - 1
    noises = chance.normal(c.steps * c.levels, c.inputs).unbind(1)
    plain = langevin(lambda x: model.score(x, last), reach, noises, c.eta * c.last**2)
    errors = [abs(float((x.sum(1) < 0).float().mean()) - data.share) for x in (made, plain)]
    return {"weight_error": errors[0], "plain_weight_error": errors[1]}
