"""Worked examples of the family schedules."""

from __future__ import annotations

from descend.catalog.examples import Compute, Inputs
from descend.optim.schedules import cosine, linear_warmup


def mf_cosine(i: Inputs) -> Inputs:
    return {"eta": [cosine(t, i["T"], i["eta0"], i["eta_min"]) for t in i["t"]]}


def s940_cosine(i: Inputs) -> Inputs:
    return {"eta": [cosine(t, i["T"], i["eta_max"], i["eta_min"]) for t in i["t"]]}


def warmup(i: Inputs) -> Inputs:
    """With k micro-batches to a step, t counts micro-batches and the ramp is k times as long."""
    low, high, length, k = i["eta_min"], i["eta0"], i["T_warm"], i["k"]
    return {
        "warmup": [linear_warmup(t, length, low, high) for t in i["t"]],
        "accumulated_t_0_20_40": [linear_warmup(k * t, k * length, low, high) for t in i["t"]],
    }


EXAMPLES: dict[str, Compute] = {
    "MF-8.1.3-cosine": mf_cosine,
    "S940-2.3-cosine-annealing": s940_cosine,
    "MF-13.2-warmup": warmup,
}

SET_ASIDE: dict[str, str] = {}
