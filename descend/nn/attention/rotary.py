"""Rotary positions: a query and a key are turned by their positions, so that their product knows the distance alone.

    θ_i = base^(−2i/k)                     i = 0 .. k/2 − 1
    (a, b) -> (a cos mθ − b sin mθ, b cos mθ + a sin mθ)          at position m
    ⟨R_m q, R_n k⟩ = ⟨q, R_{n−m} k⟩

The pairs are (x_i, x_{i + k/2}), halves of the vector, as in the Hugging Face layout of the LLaMA weights; the books
pair neighbours (x_2i, x_2i+1), the same up to a permutation of the rows of W^Q and W^K (`ops.attention.rotary`). Values
are not turned. The product depends on n − m (DLN prints the sign reversed, an erratum).

Longer contexts L than the L_0 that the model was trained for, by other frequencies:

    linear     θ_i / factor                                          positions are interpolated into 0 .. L_0
    dynamic    base · (factor L / L_0 − factor + 1)^(k/(k−2))        beyond L_0 the base grows with the text (NTK)
    llama3     long waves θ_i / factor, short ones θ_i, in between a mixture           as released with LLaMA 3.1
    yarn       the same by a ramp over i, from `fast` to `slow` turns in L_0; cos and sin times 0.1 ln(factor) + 1

The books only name these rules (S940 12.5); the formulas are those of the released models. Factor 1 changes nothing.

Systems: rope, rope-scaling
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from descend.ops.attention.rotary import frequencies
from descend.ranges import Length, Positive

FIELDS = {
    "theta": "rope_theta",
    "kind": "rope_type",
    "factor": "factor",
    "low": "low_freq_factor",
    "high": "high_freq_factor",
    "original": "original_max_position_embeddings",
    "fast": "beta_fast",
    "slow": "beta_slow",
    "attention": "attention_factor",
    "mscale": "mscale",
    "mscale_all": "mscale_all_dim",
}
KINDS = {  # the fields of each kind, beside theta and kind
    "default": (),
    "linear": ("factor",),
    "llama3": ("factor", "low", "high", "original"),
    "dynamic": ("factor",),
    "yarn": ("factor", "original", "fast", "slow", "attention", "mscale", "mscale_all"),
}
ONE_WAY = {"partial_rotary_factor": 1.0, "truncate": True}  # settings that this code computes in one way only


@dataclass(frozen=True)
class Rope:
    """The frequencies of a model, and what a longer context makes of them."""

    theta: Positive = 10000.0
    kind: str = "default"
    factor: Positive = 1.0
    low: Positive = 1.0
    high: Positive = 4.0
    original: Length = 8192
    fast: Positive = 32.0
    slow: Positive = 1.0
    attention: Positive | None = None
    mscale: Positive | None = None
    mscale_all: Positive | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"rope_type {self.kind!r} is not known, only {', '.join(KINDS)}")

    @staticmethod
    def read(values: dict[str, Any]) -> Rope:
        """From config.json's rope_parameters."""
        for name, value in ONE_WAY.items():
            if values.get(name, value) != value:
                raise ValueError(f"{name} = {values[name]!r} is not supported, only {value!r}")
        given = {ours: values[theirs] for ours, theirs in FIELDS.items() if values.get(theirs) is not None}
        return Rope(**given)

    def write(self) -> dict[str, Any]:
        """For config.json: the fields that this kind has."""
        values = {FIELDS[name]: getattr(self, name) for name in ("theta", "kind", *KINDS[self.kind])}
        return {name: value for name, value in values.items() if value is not None}

    def reach(self, context: int) -> int:
        """How long a text may be when the model was trained with `context`."""
        return int(context * self.factor) if self.kind == "dynamic" else context

    def frequencies(self, size: int, stretch: float = 1.0) -> Tensor:
        """θ (k/2,); `stretch` enlarges the base (dynamic)."""
        theta = frequencies(size, ntk_base(self.theta, size, stretch) if stretch != 1 else self.theta)
        if self.kind == "linear":
            return theta / self.factor
        if self.kind == "llama3":
            waves = self.original * theta / (2 * math.pi)  # in the context that the model was trained with
            share = ((waves - self.low) / (self.high - self.low)).clamp(0, 1)
            return theta * (share + (1 - share) / self.factor)
        if self.kind == "yarn":
            return theta * (1 - self.ramp(size)) + theta / self.factor * self.ramp(size)
        return theta

    def ramp(self, size: int) -> Tensor:
        """How much of each frequency is interpolated (yarn): 0 for those of many turns, 1 for those of few."""
        bounds = [
            size * math.log(self.original / (2 * math.pi * turns)) / (2 * math.log(self.theta))
            for turns in (self.fast, self.slow)
        ]
        first, last = max(math.floor(bounds[0]), 0), min(math.ceil(bounds[1]), size - 1)
        return ((torch.arange(size // 2) - first) / (last - first or 0.001)).clamp(0, 1)

    @property
    def amplitude(self) -> float:
        """What cos and sin are multiplied by, so that the softmax of a longer text stays as sharp (yarn)."""
        if self.kind != "yarn":
            return 1.0
        if self.attention is not None:
            return self.attention
        if self.mscale and self.mscale_all:
            return sharpness(self.factor, self.mscale) / sharpness(self.factor, self.mscale_all)
        return sharpness(self.factor)

    @property
    def score_scale(self) -> float:
        """What DeepSeek multiplies the scores by beside 1/√k (yarn with `mscale_all`)."""
        return sharpness(self.factor, self.mscale_all) ** 2 if self.kind != "default" and self.mscale_all else 1.0

    def angles(self, positions: Tensor, size: int, context: int | None = None) -> tuple[Tensor, Tensor]:
        """cos and sin (…, k/2) for positions (…); `context` is the one trained with, which `dynamic` must know."""
        stretch = 1.0
        if self.kind == "dynamic":
            if context is None:
                raise ValueError("rope_type 'dynamic' needs the context that the model was trained with")
            length = int(positions.max()) + 1
            stretch = max(1.0, self.factor * length / context - (self.factor - 1))
        angle = positions[..., None].float() * self.frequencies(size, stretch).to(positions.device)
        if self.amplitude == 1:
            return angle.cos(), angle.sin()
        return angle.cos() * self.amplitude, angle.sin() * self.amplitude


def ntk_base(theta: float, size: int, stretch: float) -> float:
    """base · stretch^(k/(k−2)): the longest wave becomes longer by `stretch`, the shortest stays."""
    return theta * stretch ** (size / (size - 2))


def sharpness(factor: float, weight: float = 1.0) -> float:
    """0.1 weight ln(factor) + 1, and 1 without scaling."""
    return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x (b, t, h, k) turned by angles (t, k/2) or (b, t, k/2)."""
    a, b = x.chunk(2, dim=-1)
    cos, sin = cos[..., None, :].to(x.dtype), sin[..., None, :].to(x.dtype)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def rope_of_older_files(values: dict[str, Any], theta: float = 10000.0) -> dict[str, Any]:
    """config.json with `rope_theta` and `rope_scaling`, as it was before they became `rope_parameters`."""
    rope = values.get("rope_parameters")
    if rope is None:
        scaling = values.get("rope_scaling") or {}
        rope = {"rope_theta": values.get("rope_theta", theta), **scaling}
    rope = {"rope_type": rope.get("type", "default"), **rope}
    if "original" in KINDS.get(rope["rope_type"], ()) and "max_position_embeddings" in values:
        rope = {"original_max_position_embeddings": values["max_position_embeddings"], **rope}
    return values | {"rope_parameters": rope}
