"""Recipes for restricted Boltzmann machines of images, whose pixels are taken as bits."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal

import torch
from torch import Tensor

from descend.contracts import Exhibit
from descend.data.images.labelled import Preprocessing, Splits
from descend.data.streams.arrays import generator
from descend.errors import Mistake
from descend.kinds.generate_images import UNIT, GenerateImages, Learner
from descend.models.rbm import RBM, RBMConfig
from descend.optim.rules import SGD
from descend.ranges import Depth, Range
from descend.tasks.boltzmann import BoltzmannDivergence, PersistentBoltzmann
from descend.views.energy import show_weights
from descend.weights.pretrained import Pretrained

CHAINS = 11  # key of the bits that the chains begin with


@dataclass(frozen=True)
class BitChains:
    """How the samples that push the energy up are made."""

    method: Literal["persistent", "from-data"] = "persistent"
    """persistent: chains that go on from step to step (PCD); from-data: chains that begin at the batch (CD-K)."""
    steps: Depth = 1
    """K, rounds of Gibbs sampling in a training step."""
    chains: Annotated[int, Range(int, least=1, most=2**16)] = 64
    """Chains that are kept; a power of two, and no fewer than --batch."""


@dataclass(frozen=True)
class BoltzmannImages(GenerateImages):
    """A restricted Boltzmann machine."""

    model: RBMConfig = field(default_factory=RBMConfig)
    gibbs: BitChains = field(default_factory=BitChains)
    optim: Any = field(default_factory=SGD)
    scale: ClassVar[tuple[float, float]] = UNIT

    def assemble(self, prepare: Preprocessing) -> Learner:
        g, loop = self.gibbs, self.loop
        if g.chains & (g.chains - 1) or (g.method == "persistent" and g.chains < loop.batch):
            raise Mistake(f"--gibbs.chains {g.chains}: give a power of two, at least --batch {loop.batch}")
        model = RBM(replace(self.model, shape=prepare.image))
        if g.method == "from-data":
            return Learner(BoltzmannDivergence(model), model, {"model": self.optim})
        start = (torch.rand(g.chains, model.visible, generator=generator(loop.seed, CHAINS)) < 0.5).float()
        return Learner(PersistentBoltzmann(model, start), model, {"model": self.optim})

    def draw(self, random: torch.Generator, n: int, image: tuple[int, int, int]) -> dict[str, Tensor]:
        """Uniform numbers for every bit of every round, and which chain goes on."""
        g, visible = self.gibbs, image[0] * image[1] * image[2]
        return {
            "for_hidden": torch.rand(n, g.steps, self.model.hidden, generator=random),
            "for_visible": torch.rand(n, g.steps, visible, generator=random),
            "chain": torch.arange(n) % g.chains,
        }

    def exhibits(self, model: Pretrained, splits: Splits, prepare: Preprocessing) -> list[Exhibit]:
        assert isinstance(model, RBM)
        return [*super().exhibits(model, splits, prepare), show_weights(model.weight, prepare.image)]
