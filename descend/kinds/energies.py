"""Recipes for energies of points in the plane, where Z can be integrated on a grid: PCD, CD-K, and NCE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import torch
from torch import Tensor

from descend.contracts import Exhibit
from descend.data.streams.arrays import generator
from descend.data.toys.densities import cover
from descend.errors import Mistake
from descend.kinds.densities import GeneratePoints, PointSplits
from descend.kinds.generate_images import Learner
from descend.models.energy_network import EnergyNetwork, EnergyNetworkConfig, NormalisedEnergyNetwork
from descend.ops.energy.gibbs import Energy, integrate_energy
from descend.ops.energy.score import score_of_energy
from descend.optim.rules import Adam
from descend.ranges import Depth, NonNegative, Positive, Range, Share
from descend.tasks.energy import ContrastiveDivergence, NoiseContrastive, PersistentDivergence
from descend.views.densities import show_field
from descend.views.energy import show_descent, show_landscape

CELLS = 250  # of the grid that Z is summed over, a side
FARTHER = 1.0  # how much the grid is larger than the box of the data, in widths of it
CHAINS, NOISE = 11, 12  # keys of the random numbers that are drawn once
MOMENTS = 20_000  # points that say how wide the noise is


def integrate_plane(points: PointSplits) -> Callable[[Energy], Tensor]:
    """log Z of an energy, from a grid that reaches beyond the data."""
    left, right, bottom, top = points.box
    wide, high = FARTHER * (right - left), FARTHER * (top - bottom)
    middles, area = cover((left - wide, right + wide, bottom - high, top + high), CELLS)

    def log_z(energy: Energy) -> Tensor:
        with torch.no_grad():
            where = next(energy.parameters()) if isinstance(energy, torch.nn.Module) else middles.float()
            return integrate_energy(energy, middles.to(where), area)

    return log_z


@dataclass(frozen=True)
class Divergence:
    """How the samples that push the energy up are made."""

    method: Literal["persistent", "from-data"] = "persistent"
    """persistent: chains that go on from step to step (PCD); from-data: chains that begin at the batch (CD-K)."""
    steps: Depth = 15
    """K, Langevin steps of a chain in a training step."""
    eta: Positive = 0.002
    """Length of a step."""
    chains: Annotated[int, Range(int, least=1, most=2**16)] = 512
    """Chains that are kept; a power of two, and no fewer than --batch."""
    anew: Share = 0.01
    """Probability that a chain begins anew, from noise."""
    size: NonNegative = 0.0005
    """α, the price of large energies."""


@dataclass(frozen=True)
class EnergyPoints(GeneratePoints):
    """An energy of points, trained by its own samples."""

    model: EnergyNetworkConfig = field(default_factory=EnergyNetworkConfig)
    divergence: Divergence = field(default_factory=Divergence)
    optim: Any = field(default_factory=Adam)

    def assemble(self, points: PointSplits) -> Learner:
        d, loop = self.divergence, self.loop
        if d.chains & (d.chains - 1) or (d.method == "persistent" and d.chains < loop.batch):
            raise Mistake(f"--divergence.chains {d.chains}: give a power of two, at least --batch {loop.batch}")
        model, log_z = EnergyNetwork(self.model), integrate_plane(points)
        if d.method == "from-data":
            return Learner(ContrastiveDivergence(model, log_z, d.eta, d.size), model, {"model": self.optim})
        start = self.model.reach * torch.randn(d.chains, self.model.inputs, generator=generator(loop.seed, CHAINS))
        return Learner(PersistentDivergence(model, log_z, d.eta, d.size, start), model, {"model": self.optim})

    def draw(self, random: torch.Generator, n: int) -> dict[str, Tensor]:
        """The noise of the chains, which of them they are, and which of those begin anew."""
        d, inputs = self.divergence, self.model.inputs
        return {
            "noise": torch.randn(n, d.steps, inputs, generator=random),
            "chain": torch.arange(n) % d.chains,
            "anew": torch.rand(n, generator=random) < d.anew,
            "fresh": self.model.reach * torch.randn(n, inputs, generator=random),
        }

    def log_density(self, model: Any) -> Callable[[Tensor], Tensor] | None:
        return lambda x: -model(x)

    def exhibits(self, model: Any, points: PointSplits) -> list[Exhibit]:
        return [*super().exhibits(model, points), *show_energy(model, points)]


@dataclass(frozen=True)
class ContrastPoints(GeneratePoints):
    """An energy of points that learns its own normaliser, by telling data from noise."""

    model: EnergyNetworkConfig = field(default_factory=EnergyNetworkConfig)
    optim: Any = field(default_factory=Adam)
    wider: Positive = 1.2
    """How much wider the noise is than the data, on each axis."""

    def assemble(self, points: PointSplits) -> Learner:
        model, seen = NormalisedEnergyNetwork(self.model), points.train
        if seen is None and points.density is not None:
            seen = points.density.sample(MOMENTS, generator(NOISE))
        assert seen is not None
        task = NoiseContrastive(model, integrate_plane(points), seen.mean(0), self.wider * seen.std(0))
        return Learner(task, model, {"model": self.optim})

    def draw(self, random: torch.Generator, n: int) -> dict[str, Tensor]:
        return {"noise": torch.randn(n, self.model.inputs, generator=random)}

    def log_density(self, model: Any) -> Callable[[Tensor], Tensor] | None:
        return lambda x: -model(x)

    def exhibits(self, model: Any, points: PointSplits) -> list[Exhibit]:
        return [*super().exhibits(model, points), *show_energy(model, points)]


def show_energy(model: EnergyNetwork, points: PointSplits) -> list[Exhibit]:
    """The landscape, the score as arrows, and where descent leads."""
    field = show_field(score_of_energy(model), points.box, "Score −∇E", points.valid)
    return [show_landscape(model, points.box), field, show_descent(model, points.valid, points.box)]
