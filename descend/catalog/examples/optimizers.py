"""Worked examples of the family optimizers."""

from __future__ import annotations

from torch import Tensor, nn

from descend.catalog.examples import Compute, Inputs, real
from descend.optim.clip import clip_norm


def clipped(gradient: list[float], tau: float) -> Tensor | None:
    p = nn.Parameter(real(gradient))
    p.grad = real(gradient)
    clip_norm([p], tau)
    return p.grad


def mf_clip(i: Inputs) -> Inputs:
    return {"clipped": [clipped(g, i["tau"]) for g in i["g"]]}


EXAMPLES: dict[str, Compute] = {"MF-8.5.1-clip": mf_clip}

SET_ASIDE: dict[str, str] = {}
