"""The rules of a game between two players as flags: the losses, how often each moves, what keeps a critic smooth."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import tyro
from torch import nn

from descend.data.streams.shards import process
from descend.engine.loop import Loop
from descend.errors import Mistake
from descend.losses.adversarial import (
    GameLoss,
    Hinge,
    LeastSquares,
    NonSaturating,
    Relativistic,
    RelativisticMean,
    Saturating,
    Wasserstein,
)
from descend.losses.gradient_penalty import R1, GradientPenalty, Penalty
from descend.nn.adversarial.spectral import normalize_spectrum
from descend.optim.rules import Adam
from descend.ranges import Depth, Few, NonNegative
from descend.tasks.adversarial import GameRules

LossName = Literal[
    "non-saturating",
    "saturating",
    "least-squares",
    "hinge",
    "wasserstein",
    "wgan-gp",
    "relativistic",
    "relativistic-mean",
]
LOSSES: dict[LossName, GameLoss] = {
    "non-saturating": NonSaturating(),
    "saturating": Saturating(),
    "least-squares": LeastSquares(),
    "hinge": Hinge(),
    "wasserstein": Wasserstein(),
    "wgan-gp": Wasserstein(),
    "relativistic": Relativistic(),
    "relativistic-mean": RelativisticMean(),
}


@dataclass(frozen=True)
class Players:
    """A rule for each player."""

    d: Adam = field(default_factory=Adam)
    g: Adam = field(default_factory=Adam)


@dataclass(frozen=True)
class Game:
    """The rules of the game."""

    loss: LossName = "non-saturating"
    """What the players minimise; wgan-gp is wasserstein with a gradient penalty instead of clipped weights."""
    d_moves: Depth = 1
    """Moves of the discriminator in a step. The batch is cut into as many equal parts as the busier player has moves;
    each move of either player sees one part."""
    g_moves: Depth = 1
    """Moves of the generator after them."""
    norm: Literal["none", "spectral"] = "none"
    """spectral: the discriminator's weights are divided by their largest singular values."""
    minibatch: Few = 0
    """Kernels of minibatch discrimination, by which the discriminator sees how alike a batch is; 0: none."""
    clip: NonNegative = 0.01
    """wasserstein: the critic's weights stay within ± this."""
    penalty: NonNegative = 10.0
    """wgan-gp: weight λ of the gradient penalty."""
    r1: NonNegative = 0.0
    """Weight γ of the squared slope at real examples, for any other loss; 0: none."""
    generator_loss: tyro.conf.Suppress[str] = ""
    """What an earlier release wrote for `loss`."""

    def __post_init__(self) -> None:
        if self.generator_loss in LOSSES:
            object.__setattr__(self, "loss", self.generator_loss)
            object.__setattr__(self, "generator_loss", "")

    def rules(self, loop: Loop) -> GameRules:
        """For the task, after a look at what the batch is cut into."""
        parts = max(self.d_moves, self.g_moves)
        name = "d" if self.d_moves >= self.g_moves else "g"
        processes = process()[1]
        if loop.batch % (loop.accumulate * parts * processes):
            among = f" × {processes} processes" if processes > 1 else ""
            raise Mistake(
                f"--batch {loop.batch} does not divide into --accumulate {loop.accumulate} × --game.{name}-moves "
                f"{parts} parts{among}"
            )
        penalty = self.find_penalty()
        if penalty is not None and loop.parallel == "fsdp" and processes > 1:
            raise Mistake("--parallel fsdp: a penalty on the critic's slope needs whole weights; use --parallel ddp")
        clip = self.clip if self.loss == "wasserstein" else 0.0
        return GameRules(LOSSES[self.loss], penalty, clip, self.d_moves, self.g_moves)

    def find_penalty(self) -> Penalty | None:
        """On the slope of the critic."""
        if self.loss == "wgan-gp":
            return GradientPenalty(self.penalty)
        if self.r1 and self.loss == "relativistic-mean":
            raise Mistake("--game.r1 is a mean over examples, relativistic-mean compares a batch; use relativistic")
        return R1(self.r1) if self.r1 else None

    def dress(self, d: nn.Module) -> nn.Module:
        """The discriminator with its norms."""
        return normalize_spectrum(d) if self.norm == "spectral" else d
