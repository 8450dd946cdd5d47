"""Sampling: new examples from a model that generates them (a GAN, a VAE, a flow, a diffusion model, ..).

Example i of a seed is made of random numbers of its own, so it is the same whether it is drawn alone or among others,
up to the rounding of another batch size. At most `batch` examples are in memory at a time while they are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor

from descend.contracts import Generates, Wish
from descend.data.images.labelled import Preprocessing
from descend.data.tables.points import SAVED, PointScale
from descend.errors import Mistake, nearest
from descend.inference.images import find_preprocessing
from descend.inference.trained import BATCH, Trained, load_trained
from descend.sampling.chance import PerExample


@dataclass(frozen=True)
class Order:
    """What a user asks for; what is left out is the model's own choice."""

    steps: int = 0
    """Steps of an iterative sampler."""
    guidance: float | None = None
    """How much the class or prompt counts; 1 is the conditional model itself."""
    method: str = ""
    """The sampler."""
    label: str = ""
    """The class of the examples, by its name."""
    prompt: str = ""
    """What they should show."""

    def name_given(self) -> dict[str, str]:
        """The flags that are given, by the field of a wish that each of them fills."""
        flags = {"steps": self.steps, "guidance": self.guidance, "method": self.method}
        flags |= {"classes": self.label, "prompts": self.prompt}
        shown = {"classes": "--class", "prompts": "--prompt"}
        return {name: shown.get(name, f"--{name}") for name, value in flags.items() if value not in (0, None, "")}


@dataclass(frozen=True)
class Sampler:
    """A model that makes examples."""

    trained: Trained
    prepare: Preprocessing | None = None
    """Of images; None where the examples are points."""
    scale: PointScale | None = None
    """Of points of a file; None where they are not standardized."""
    takes: str = field(default="nothing: it samples", init=False)

    @classmethod
    def open(cls, run: str | Path, checkpoint: str | int = "best") -> Sampler:
        """From a run or a model folder."""
        return cls.read(load_trained(run, checkpoint))

    @classmethod
    def read(cls, trained: Trained) -> Sampler:
        if not isinstance(trained.model, Generates):
            raise Mistake(f"{trained.folder} holds a {trained.kind}, which does not generate samples")
        points = (trained.folder / SAVED).exists()
        return cls(trained, find_preprocessing(trained), PointScale.read(trained.folder) if points else None)

    @torch.no_grad()
    def sample(
        self, count: int, seed: int = 0, order: Order | None = None, batch: int = BATCH, first: int = 0
    ) -> Tensor:
        """Examples number first .. first + count − 1 of a seed: points (count, d), or images (count, c, h, w) in 0..1.

        Args:
            count: how many.
            seed: of the random numbers; the same seed gives the same examples.
            order: what they should be, and how they are made.
            batch: how many are made at a time.
            first: where to begin, so that one of them can be made again.
        """
        if count < 1:
            raise Mistake(f"{count} samples: at least 1")
        if batch < 1:
            raise Mistake(f"--batch {batch}: at least 1")
        order = order or Order()
        self.check(order)
        ends = [*range(first, first + count, batch), first + count]
        made = [self.make(PerExample(seed, b - a, a, self.trained.device), order) for a, b in pairwise(ends)]
        return torch.cat(made)

    def make(self, chance: PerExample, order: Order) -> Tensor:
        """One batch."""
        x: Tensor = self.trained.model.generate(chance, self.wish(order, chance.count)).cpu()
        if not x.isfinite().all():
            raise Mistake(f"{self.trained.folder}: the samples are not numbers (NaN or infinity); try more --steps")
        known = self.prepare or self.scale
        return x if known is None else known.restore(x)

    def check(self, order: Order) -> None:
        """Refuse what this model cannot be asked for."""
        offers = self.trained.model.offers
        for name, flag in order.name_given().items():
            if name == "guidance" and name in offers and not (order.label or order.prompt):
                wanted = "--class NAME" if "classes" in offers else "--prompt TEXT"
                raise Mistake(f"{flag} {order.guidance}: guidance needs something to be guided by; give {wanted}")
            if name not in offers:
                raise Mistake(f"{flag}: a {self.trained.kind} does not take it; leave this flag out")
        if order.steps < 0:
            raise Mistake(f"--steps {order.steps}: at least 1")

    def wish(self, order: Order, count: int) -> Wish:
        """The order for a batch of this size, in the model's terms."""
        classes = torch.full((count,), self.find_class(order.label)) if order.label else None
        where = self.trained.device
        return Wish(
            steps=order.steps,
            guidance=order.guidance,
            method=order.method,
            classes=None if classes is None else classes.to(where),
            prompts=(order.prompt,) * count if order.prompt else (),
        )

    def find_class(self, label: str) -> int:
        """The number of a class."""
        known: Sequence[str] = self.prepare.labels if self.prepare else ()
        if label not in known:
            raise Mistake(f"--class {label!r} is unknown.{nearest(label, known)} Known: {', '.join(known) or 'none'}")
        return list(known).index(label)
