"""Adversarial training: a generator g and a discriminator (or critic) d move in turn, each with the other held fixed.

    min_G max_D  E log D(x) + E log(1 − D(G(z)))        D(x) = σ(d(x));  the losses are those of `losses/adversarial.py`

A batch holds real examples x (b, ..), what the generator starts from (`inputs`, noise z), and what both players are
told (`given`, a class c):  G(z, c), d(x, c).  Randomness is data, so a resumed run sees the same.

EQUAL PARTS. Where the players move more than once in a step, the batch is cut into max(d_moves, g_moves) parts of one
size, and every move of either player sees one of them; the generator's are the last ones. With one move each, both see
the whole batch. Part i is every k-th example from i on, so that micro-batches and processes cut the same parts. (All
generator moves used to see the whole batch, d_moves times what the critic saw.)

WHO STANDS STILL. While one player moves, the other takes no gradient (the engine), and none of its buffers changes: its
batch norms use the statistics of the batch but do not count them, its spectral norms do not iterate (`run_still`).

After each move of the discriminator its weights are clipped to −c..c where the rules say so (Wasserstein GAN).

Systems: gan, wgan, wgan-gp, conditional-gan
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.func import functional_call

from descend.contracts import Batch, JointMove, Loss, Move, Task
from descend.losses.adversarial import GameLoss, NonSaturating
from descend.losses.gradient_penalty import Penalty

Quality = Callable[..., dict[str, Tensor]]


@runtime_checkable
class JudgesSet(Protocol):
    """A quality that judges all generated examples together, from evidence that it collects (`Task.judge`)."""

    evidence: tuple[str, ...]

    def __call__(self, made: Tensor, *given: Tensor) -> dict[str, Tensor]: ...

    def judge(self, means: dict[str, float], evidence: dict[str, Any]) -> dict[str, float]: ...


@dataclass(frozen=True)
class GameRules:
    """Who minimises what, and how often each moves."""

    loss: GameLoss = field(default_factory=NonSaturating)
    penalty: Penalty | None = None
    """On the slope of the discriminator; the batch then has `u` (b) in 0..1."""
    clip: float = 0.0
    """The discriminator's weights stay in −clip..clip; 0: as they are."""
    d_moves: int = 1
    g_moves: int = 1

    @property
    def parts(self) -> int:
        """Into how many parts a batch is cut."""
        return max(self.d_moves, self.g_moves)


class Adversarial(Task):
    """`quality` scores generated examples (and what they were made for), one value for each."""

    players = ("d", "g")

    def __init__(
        self,
        g: nn.Module,
        d: nn.Module,
        quality: Quality,
        rules: GameRules | None = None,
        inputs: tuple[str, ...] = ("z",),
        given: tuple[str, ...] = (),
    ):
        super().__init__()
        self.g, self.d, self.quality, self.rules = g, d, quality, rules or GameRules()
        self.inputs, self.given = inputs, given
        self.evidence = quality.evidence if isinstance(quality, JudgesSet) else ()
        if self.rules.penalty is not None and self.rules.loss.compares == "batch":
            raise ValueError("a penalty is a mean over examples, and this loss compares a whole batch; choose one")

    def moves(self, batch: Batch) -> Iterator[Move | JointMove]:
        rules = self.rules
        for i in range(rules.d_moves):
            yield self.move_d(self.cut(batch, i))
            clip_weights(self.d, rules.clip)
        for i in range(rules.parts - rules.g_moves, rules.parts):
            yield self.move_g(self.cut(batch, i))

    def cut(self, batch: Batch, i: int) -> Batch:
        """Part i of the batch: every k-th example."""
        k = self.rules.parts
        if len(batch["x"]) % k:
            raise ValueError(f"{len(batch['x'])} examples do not divide into {k} equal parts")
        return batch if k == 1 else {name: value[i::k] for name, value in batch.items()}

    # The discriminator's move

    def move_d(self, part: Batch) -> Move | JointMove:
        if self.rules.loss.compares == "batch":
            return JointMove("d", lambda: self.score_both(part), self.compare_d)
        return Move("d", lambda: self.tell_apart(part))

    def tell_apart(self, part: Batch) -> Loss:
        """The discriminator's loss on real and generated examples, which the generator makes standing still."""
        fake, given = self.make_still(part), self.conditions(part)
        found = self.compare_d({"real": self.d(part["x"], *given), "fake": self.d(fake, *given)})
        if self.rules.penalty is None:
            return found
        # Its plain forward: a compiled module has no second derivative.
        penalty = self.rules.penalty(lambda x: self.d.forward(x, *given), part["x"], fake, part["u"])
        return Loss({**found.terms, "penalty": penalty}, found.told)

    def score_both(self, part: Batch) -> Batch:
        """Scores of real and of generated examples."""
        fake, given = self.make_still(part), self.conditions(part)
        return {"real": self.d(part["x"], *given), "fake": self.d(fake, *given)}

    def compare_d(self, scores: Batch) -> Loss:
        loss = self.rules.loss
        return Loss(loss.of_discriminator(scores["real"], scores["fake"]), loss.tell(scores["real"], scores["fake"]))

    # The generator's move

    def move_g(self, part: Batch) -> Move | JointMove:
        if self.rules.loss.compares == "batch":
            return JointMove("g", lambda: self.score_made(part, self.make(part)), self.compare_g)
        return Move("g", lambda: self.deceive(part))

    def deceive(self, part: Batch) -> Loss:
        """The generator's loss, from the scores of a discriminator that stands still."""
        made = self.make(part)
        found = self.compare_g(self.score_made(part, made))
        return Loss({**found.terms, **self.beside(part, made)})

    def score_made(self, part: Batch, made: Tensor) -> Batch:
        """Scores of generated examples; of real ones where the loss compares the two."""
        given = self.conditions(part)
        fake = run_still(self.d, made, *given)
        if self.rules.loss.compares == "nothing":
            return {"real": fake.new_empty(0), "fake": fake}
        return {"real": run_still(self.d, part["x"], *given), "fake": fake}

    def compare_g(self, scores: Batch) -> Loss:
        return Loss(self.rules.loss.of_generator(scores["real"], scores["fake"]))

    def beside(self, part: Batch, made: Tensor) -> dict[str, Tensor]:
        """What else the generator minimises, by name."""
        return {}

    # What is generated

    def conditions(self, batch: Batch) -> list[Tensor]:
        """What both players are told."""
        return [batch[name] for name in self.given]

    def make(self, batch: Batch) -> Tensor:
        """G(z, c)"""
        made: Tensor = self.g(*(batch[name] for name in self.inputs), *self.conditions(batch))
        return made

    @torch.no_grad()
    def make_still(self, batch: Batch) -> Tensor:
        """G(z, c) of a generator that takes no gradient and keeps its statistics."""
        return run_still(self.g, *(batch[name] for name in self.inputs), *self.conditions(batch))

    def score(self, batch: Batch) -> dict[str, Tensor]:
        return self.quality(self.make(batch), *self.conditions(batch))

    def judge(self, means: dict[str, float], evidence: dict[str, Any]) -> dict[str, float]:
        return self.quality.judge(means, evidence) if isinstance(self.quality, JudgesSet) else means


def run_still(module: nn.Module, *inputs: Tensor) -> Tensor:
    """The output of a module whose buffers stay as they are: what it would count goes into copies."""
    copies = {name: buffer.clone() for name, buffer in module.named_buffers()}
    found: Tensor = functional_call(module, copies, inputs) if copies else module(*inputs)
    return found


@torch.no_grad()
def clip_weights(module: nn.Module, limit: float) -> None:
    """Bring every parameter into −limit..limit; 0 leaves them."""
    for p in module.parameters() if limit else ():
        p.clamp_(-limit, limit)
