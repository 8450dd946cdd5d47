"""Worked examples of attention-cost-model and sequence-architecture-comparison."""

from __future__ import annotations

from descend.catalog.examples import Compute, Inputs
from descend.theory.attention_cost import full_pairs, score_multiplications, work_ratio
from descend.theory.recurrent import rnn_parameters
from descend.theory.sequence_cost import ATTENTION, RNN, recurrent_multiplications, step_multiplications


def head_factor(i: Inputs) -> Inputs:
    every, one = (score_multiplications(i["T"], heads, i["d_k"]) for heads in (i["H"], 1))
    return {"all_heads": every, "as_in_36.8_and_37.10": one, "ratio": every // one}


def score_count(i: Inputs) -> Inputs:
    counts = [full_pairs(n) for n in i["n"]]
    factor = i["n"][1] / i["n"][0]
    return {
        "scores": counts,
        "work_ratio_linear": work_ratio(factor, 1),
        "work_ratio_quadratic": work_ratio(factor, 2),
    }


def path_length(i: Inputs) -> Inputs:
    return {"rnn": RNN.path(i["from"], i["to"]), "attention": ATTENTION.path(i["from"], i["to"])}


def step_cost(i: Inputs) -> Inputs:
    d_x, d_h = i["d_x"], i["d_h"]
    return {
        "rnn_recurrent": recurrent_multiplications(d_h),
        "rnn_all": step_multiplications(d_x, d_h),
        "lstm_all": step_multiplications(d_x, d_h, gates=4),
        "rnn_parameters_21.1": rnn_parameters(d_x, d_h, outputs=1),
    }


def steps_of_a_thousand(i: Inputs) -> Inputs:
    n = i["n"]
    return {"rnn_steps": RNN.steps(n), "attention_steps": ATTENTION.steps(n), "rnn_path_1_to_n": RNN.path(1, n)}


EXAMPLES: dict[str, Compute] = {
    "MF-36.8-head-factor": head_factor,
    "VOM-9.6-score-count": score_count,
    "MF-18.7.1-path-length": path_length,
    "MF-21.4-step-cost": step_cost,
    "VOM-9.7-path-length": steps_of_a_thousand,
}

SET_ASIDE: dict[str, str] = {}
