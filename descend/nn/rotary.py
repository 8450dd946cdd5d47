"""Rotary positions: a query and a key are turned by their positions, so that their product knows the distance alone.

    θ_i = base^(−2i/k)                     i = 0 .. k/2 − 1
    (a, b) -> (a cos mθ − b sin mθ, b cos mθ + a sin mθ)          at position m
    ⟨R_m q, R_n k⟩ = ⟨q, R_{n−m} k⟩

The pairs are (x_i, x_{i + k/2}), halves of the vector, as in the Hugging Face layout of the LLaMA weights; the books
pair neighbours (x_2i, x_2i+1), the same up to a permutation of the rows of W^Q and W^K. Values are not turned. The
product depends on n − m (DLN prints the sign reversed, an erratum).

Longer contexts than the model was trained for, by other frequencies:

    linear     θ_i / factor                                                     positions are interpolated
    llama3     long waves θ_i / factor, short ones θ_i, in between a mixture       as released with LLaMA 3.1

Systems: rope, rope-scaling
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

FIELDS = {
    "theta": "rope_theta",
    "kind": "rope_type",
    "factor": "factor",
    "low": "low_freq_factor",
    "high": "high_freq_factor",
    "original": "original_max_position_embeddings",
}
KINDS = {"default": 2, "linear": 3, "llama3": 6}  # how many of the fields each kind has


@dataclass(frozen=True)
class Rope:
    """The frequencies of a model, and what a longer context makes of them."""

    theta: float = 10000.0
    kind: str = "default"
    factor: float = 1.0
    low: float = 1.0
    high: float = 4.0
    original: int = 8192

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"rope_type {self.kind!r} is not known, only {', '.join(KINDS)}")

    @staticmethod
    def read(values: dict[str, Any]) -> Rope:
        """From config.json's rope_parameters."""
        return Rope(**{ours: values[theirs] for ours, theirs in FIELDS.items() if theirs in values})

    def written(self) -> dict[str, Any]:
        """For config.json: the fields that this kind has."""
        return {theirs: getattr(self, ours) for ours, theirs in list(FIELDS.items())[: KINDS[self.kind]]}

    def frequencies(self, size: int) -> Tensor:
        """θ (k/2,)."""
        theta = 1.0 / self.theta ** (torch.arange(0, size, 2).float() / size)
        if self.kind == "linear":
            return theta / self.factor
        if self.kind == "llama3":
            waves = self.original * theta / (2 * math.pi)  # in the context that the model was trained with
            share = ((waves - self.low) / (self.high - self.low)).clamp(0, 1)
            return theta * (share + (1 - share) / self.factor)
        return theta

    def angles(self, positions: Tensor, size: int) -> tuple[Tensor, Tensor]:
        """cos and sin (…, k/2) for positions (…)."""
        angle = positions[..., None].float() * self.frequencies(size).to(positions.device)
        return angle.cos(), angle.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x (b, t, h, k) turned by angles (t, k/2) or (b, t, k/2)."""
    a, b = x.chunk(2, dim=-1)
    cos, sin = cos[..., None, :].to(x.dtype), sin[..., None, :].to(x.dtype)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def rope_of_older_files(values: dict[str, Any]) -> dict[str, Any]:
    """config.json with `rope_theta` and `rope_scaling`, as it was before they became `rope_parameters`."""
    if values.get("rope_parameters") is not None:
        return values
    scaling = values.get("rope_scaling") or {}
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    return values | {"rope_parameters": {"rope_theta": values.get("rope_theta", 10000.0), **scaling, "rope_type": kind}}
