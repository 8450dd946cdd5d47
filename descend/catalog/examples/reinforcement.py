"""Worked examples of the family reinforcement."""

from __future__ import annotations

import torch

from descend.catalog.examples import Compute, Inputs, real
from descend.losses.reinforcement import clipped_surrogate


def ppo_table(i: Inputs) -> Inputs:
    pairs = torch.cartesian_prod(real(i["r"]), real(i["A"]))
    values = clipped_surrogate(pairs[:, 0], pairs[:, 1], i["epsilon"])
    return {"table_r_A_value": torch.cat([pairs, values[:, None]], dim=1)}


def ppo_interval(i: Inputs) -> Inputs:
    ratio, far = real(i["ratio"]), real([1e6])
    # With A = 1 the surrogate stops at the upper end; with A = −1 and a ratio of 0 it stops at the lower one.
    low, high = -clipped_surrogate(0 * far, -far / far, i["eps"]), clipped_surrogate(far, far / far, i["eps"])
    up, down = (clipped_surrogate(ratio, torch.full_like(ratio, a), i["eps"]) for a in i["advantage"])
    return {"interval": torch.cat([low, high]), "surrogate_A=+1": up, "surrogate_A=-1": down}


EXAMPLES: dict[str, Compute] = {
    "S940-9.3-ppo-clip": ppo_table,
    "VOM-13.7.6-clip": ppo_interval,
}

SET_ASIDE: dict[str, str] = {}
