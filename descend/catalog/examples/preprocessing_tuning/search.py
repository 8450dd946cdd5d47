"""Worked examples of the search for hyperparameters: learning-rate finder, grid, Bayesian optimization."""

from __future__ import annotations

from descend.catalog.examples import Compute, Inputs, real
from descend.classic.bayesian import expected_improvement, posterior, squared_exponential
from descend.classic.search import grid
from descend.engine.lr_range import rate


def exponential_sweep(i: Inputs) -> Inputs:
    return {"eta": [rate(t, i["T"], i["eta_min"], i["eta_max"]) for t in i["t"]]}


def grid_count(i: Inputs) -> Inputs:
    """Lists of m, n and p values."""
    return {"models": len(grid({name: range(count) for name, count in i.items()}))}


def gp_and_ei(i: Inputs) -> Inputs:
    h, f, query = real(i["h_observed"]), real(i["f_observed"]), real(i["h_query"])
    mu, s = posterior(h[:, None], f, query[:, None], squared_exponential, i["jitter"])
    return {"mu": mu, "sd": s, "EI": expected_improvement(mu, s, f.min())}


EXAMPLES: dict[str, Compute] = {
    "MF-13.1.1-lrfinder": exponential_sweep,
    "MF-13.3.1-grid-count": grid_count,
    "MF-13.3.3-gp-ei": gp_and_ei,
}

SET_ASIDE: dict[str, str] = {}
