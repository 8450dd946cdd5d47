"""Worked examples of the family retrieval-rag: what a search costs."""

from __future__ import annotations

from descend.catalog.examples import Compute, Inputs
from descend.theory.retrieval import count_runs


def encoder_cost(i: Inputs) -> Inputs:
    runs = count_runs(i["Q"], i["D"])
    return {"cross": runs.together, "bi": runs.apart, "ratio": runs.ratio}


EXAMPLES: dict[str, Compute] = {"DLD-6.14-encoder-cost": encoder_cost}
SET_ASIDE: dict[str, str] = {}
