"""Worked examples of the family schedules."""

from __future__ import annotations

from descend.catalog.examples import Compute, Inputs
from descend.optim.schedules import cosine, exponential, linear_warmup, noam, polynomial, step_decay, warm_restarts


def mf_polynomial(i: Inputs) -> Inputs:
    return {"eta": [polynomial(t, i["alpha"], i["eta0"]) for t in i["t"]]}


def mf_exponential(i: Inputs) -> Inputs:
    return {"eta": [exponential(t, i["lambda"], i["eta0"]) for t in i["t"]]}


def mf_step(i: Inputs) -> Inputs:
    return {"eta": [step_decay(t, i["period"], i["gamma"], i["eta0"]) for t in i["t"]]}


def mf_cosine(i: Inputs) -> Inputs:
    return {"eta": [cosine(t, i["T"], i["eta0"], i["eta_min"]) for t in i["t"]]}


def s940_cosine(i: Inputs) -> Inputs:
    return {"eta": [cosine(t, i["T"], i["eta_max"], i["eta_min"]) for t in i["t"]]}


def restarts(i: Inputs) -> Inputs:
    return {"eta": [warm_restarts(t, i["periods"], i["gamma"], i["eta0"], i["eta_min"]) for t in i["t"]]}


def warmup(i: Inputs) -> Inputs:
    """With k micro-batches to a step, t counts micro-batches and the ramp is k times as long."""
    low, high, length, k = i["eta_min"], i["eta0"], i["T_warm"], i["k"]
    return {
        "warmup": [linear_warmup(t, length, low, high) for t in i["t"]],
        "accumulated_t_0_20_40": [linear_warmup(k * t, k * length, low, high) for t in i["t"]],
    }


def inverse_sqrt(i: Inputs) -> Inputs:
    rate = {t: noam(t, i["d_model"], i["warmup_steps"]) for t in (1, 1000, 2000, 4000, 16000, 100000)}
    return {
        "ratio_2000_1000": rate[2000] / rate[1000],
        "ratio_16000_4000": rate[16000] / rate[4000],
        "lr_1": rate[1],
        "lr_1000": rate[1000],
        "peak_lr_4000": rate[4000],
        "lr_100000": rate[100000],
    }


EXAMPLES: dict[str, Compute] = {
    "MF-8.1.3-polynomial": mf_polynomial,
    "MF-8.1.3-exponential": mf_exponential,
    "MF-8.1.3-step": mf_step,
    "MF-8.1.3-cosine": mf_cosine,
    "S940-2.3-cosine-annealing": s940_cosine,
    "MF-13.1.2-sgdr": restarts,
    "MF-13.2-warmup": warmup,
    "VOM-12.5-noam": inverse_sqrt,
}

SET_ASIDE: dict[str, str] = {}
