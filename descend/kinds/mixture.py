"""Two-player recipes on two-dimensional mixtures of Gaussians, where what a generator misses can be counted."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import torch
from torch import Tensor

from descend.contracts import Batch
from descend.data.streams.arrays import Drawn, InOrder, generator
from descend.data.streams.shards import process
from descend.data.toys.mixture import Mixture, grid, ring
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.game import Game, Players
from descend.kinds.recipe import Recipe
from descend.metrics.modes import Modes
from descend.models.gan import Discriminator, GANConfig, Generator
from descend.optim.schedules import Linear
from descend.ranges import Count, Positive, Range
from descend.tasks.adversarial import Adversarial
from descend.views.adversarial import show_points

VALID, TEST = 1, 2  # keys of the noise that is never trained on


@dataclass(frozen=True)
class Points:
    """The mixture to learn, and the number of points for evaluation."""

    shape: Literal["ring", "grid"] = "ring"
    modes: Annotated[int, Range(int, least=1, most=10**5)] = 8
    """Gaussians; a square number for a grid."""
    radius: Positive = 2.0
    """Of the ring; of a grid, half its side."""
    sigma: Positive = 0.02
    """Width of each Gaussian."""
    valid: Count = 2500
    """Points generated for an evaluation."""
    test: Count = 10_000
    """Points of the final test."""

    def mixture(self) -> Mixture:
        if self.modes < 1 or self.radius <= 0 or self.sigma <= 0:
            raise Mistake("--data.modes, --data.radius and --data.sigma must be above 0")
        if self.shape == "ring":
            return ring(self.modes, self.radius, self.sigma)
        side = math.isqrt(self.modes)
        if side**2 != self.modes:
            raise Mistake(
                f"--data.modes {self.modes}: a grid needs a square number, e.g. {side**2} or {(side + 1) ** 2}"
            )
        return grid(side, self.radius, self.sigma)


@dataclass(frozen=True)
class AdversarialPoints(Recipe):
    """A GAN whose data is a mixture of Gaussians."""

    model: GANConfig = field(default_factory=GANConfig)
    data: Points = field(default_factory=Points)
    optim: Players = field(default_factory=Players)
    schedule: Any = field(default_factory=Linear)
    game: Game = field(default_factory=Game)

    def build(self) -> Parts:
        loop, data = self.loop, self.data
        mixture, config = data.mixture(), self.model
        if config.outputs != 2:
            raise Mistake(
                f"--model.outputs {config.outputs}: the points of a mixture have 2 numbers; leave this flag out"
            )
        rules = self.game.rules(loop)
        torch.manual_seed(loop.seed)
        g, d = Generator(config), self.game.dress(Discriminator(2, config.width, config.depth, self.game.minibatch))
        judge = Modes(mixture.mu, data.sigma)

        def draw(random: torch.Generator, n: int) -> dict[str, Tensor]:
            x, z = mixture.sample(n, random)[0], torch.randn(n, config.latent, generator=random)
            return {"x": x, "z": z, "u": torch.rand(n, generator=random)}

        return Parts(
            task=Adversarial(g, d, judge, rules),
            model=g,
            stream=Drawn(draw, loop.batch // loop.accumulate, loop.seed, *process()),
            valid=self.noise(VALID, data.valid),
            optims={"d": self.optim.d, "g": self.optim.g},
            unit="points",
            units_per_batch=loop.batch,
            facts={
                "data": f"{data.shape} of {data.modes} Gaussians",
                "width of a Gaussian": data.sigma,
                "quality of the data itself": round(1 - math.exp(-4.5), 4),
            },
            exhibits=lambda: [show_points(g, mixture, config.latent)],
        )

    def noise(self, key: int, n: int) -> InOrder:
        """A fixed batch of noise: one batch, since modes are counted over all its points."""
        return InOrder({"z": torch.randn(n, self.model.latent, generator=generator(key))}, batch=n)

    def test(self) -> Iterable[Batch]:
        """Noise that selected nothing."""
        return self.noise(TEST, self.data.test)
