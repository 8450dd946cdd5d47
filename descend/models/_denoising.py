"""What pipelines that denoise have in common: which plan, which guidance."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import torch
from torch import Tensor

from descend.contracts import Wish
from descend.errors import Mistake
from descend.ops.diffusion.plan import Plan
from descend.sampling.diffusion.denoiser import Predict, free_guidance


class Denoises(Protocol):
    """A pipeline whose samples come from noise: what `sampling.diffusion.editing` needs of it."""

    @property
    def plan(self) -> Plan: ...

    @property
    def shape(self) -> tuple[int, int, int]: ...

    def predictor(self, count: int, wish: Wish) -> Predict: ...

    def to_latent(self, x: Tensor) -> Tensor: ...

    def from_latent(self, z: Tensor) -> Tensor: ...


class ConditionalNetwork(Protocol):
    """(x, t, y or none) -> the prediction."""

    def __call__(self, x: Tensor, t: Tensor, y: Tensor | None = None) -> Tensor: ...


def choose_plan(plan: Plan, wish: Wish) -> Plan:
    """The pipeline's plan with the method that was asked for."""
    return replace(plan, method=wish.method) if wish.method else plan  # type: ignore[arg-type]


def guide_by_class(network: ConditionalNetwork, count: int, wish: Wish, guidance: float) -> Predict:
    """The prediction for these classes; the network's last class stands for "none", also where none is asked for."""
    classes: int | None = network.config.classes  # type: ignore[attr-defined]
    gamma = guidance if wish.guidance is None else wish.guidance
    if not classes:
        if wish.classes is not None or wish.guidance not in (None, 1):
            raise Mistake("this model has no classes to be guided by; leave --class and --guidance out")
        return lambda x, t: network(x, t)
    none = torch.full((count,), classes - 1)
    if wish.classes is None:
        return lambda x, t: network(x, t, none.to(x.device))
    if (wish.classes >= classes - 1).any() or (wish.classes < 0).any():
        raise Mistake(f"class {int(wish.classes.max())} is unknown: this model has the classes 0..{classes - 2}")
    return free_guidance(network, wish.classes, none.to(wish.classes.device), gamma)
