"""Worked examples of attention-scaling-analysis."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import torch
from torch import Tensor

from descend.catalog.examples import Compute, Inputs, real
from descend.ops.attention.dot_product import scores, weigh
from descend.theory.attention import pair_softmax_slope, score_beyond, score_std


def sign_scores(d_k: int) -> Tensor:
    """The scaled score of every pair of vectors with entries ±1: all 2^d_k × 2^d_k of them."""
    signs = real(list(product((-1, 1), repeat=d_k)))
    return scores(signs, signs)


def normal_variance(i: Inputs) -> Inputs:
    std = score_std(i["d_k"])
    draw = np.random.default_rng(i["numpy_seed"])
    q, k = (torch.from_numpy(draw.standard_normal((i["samples"], i["d_k"]))) for _ in "qk")
    scaled = torch.cat(
        [scores(a[:, None], b[:, None])[:, 0, 0] for a, b in zip(q.split(5000), k.split(5000), strict=True)]
    )
    return {
        "variance_unscaled": std**2,
        "variance_scaled": (std / std) ** 2,
        "monte_carlo_variance_unscaled": (scaled * std).var(correction=0),
        "monte_carlo_variance_scaled": scaled.var(correction=0),
        "log_64": math.log(64),
    }


def score_ranges(i: Inputs) -> Inputs:
    std = score_std(i["d_k"])
    return {
        "range_scaled": i["range_unscaled"] / std,
        "range_unscaled": i["range_scaled"] * std,
        "std_unscaled": std,
        "prob_abs_dot_over_30": score_beyond(i["d_k"], i["range_unscaled"]),
    }


def scaling_variance(i: Inputs) -> Inputs:
    stds = [score_std(d_k) for d_k in i["d_k"]]
    return {
        "std_unscaled": stds,
        "std_scaled": [s / score_std(d_k) for s, d_k in zip(stds, i["d_k"], strict=True)],
        "softmax_gradient_p1mp_at_gap": [pair_softmax_slope(s) for s in stds],
    }


def dot_variance(i: Inputs) -> Inputs:
    scaled = sign_scores(i["d"]).var(correction=0)
    dots = sign_scores(i["d"]) * score_std(i["d"])
    return {"variance_over_d": dots.var(correction=0) / i["d"], "scaled_variance": scaled}


def saturation(i: Inputs) -> Inputs:
    s = real([i["scores"]]).requires_grad_()
    p = weigh(s, torch.eye(3, dtype=torch.float64))[1][0]
    jacobian = torch.stack([torch.autograd.grad(p[j], s, retain_graph=True)[0][0] for j in range(3)])
    off = jacobian - jacobian.diag().diag()
    return {"weight": p[0].detach(), "max_abs_jacobian_offdiagonal": off.abs().max(), "off_weight": p[1].detach()}


EXAMPLES: dict[str, Compute] = {
    "MF-18.1.3-variance": normal_variance,
    "MF-18.7.3-ranges": score_ranges,
    "S940-5.1-scaling-variance": scaling_variance,
    "VOM-8.4-dot-variance": dot_variance,
    "VOM-8.4-saturation": saturation,
}

SET_ASIDE: dict[str, str] = {
    "MF-18.1.3-variance:mean_softmax_entropy_unscaled_64_keys": "a mean over random draws that are not recorded",
    "MF-18.1.3-variance:mean_softmax_entropy_scaled_64_keys": "a mean over random draws that are not recorded",
    "VOM-8.4-dot-variance:simulated_variance_over_d_64": "a simulation whose draws are not recorded; exact: 1",
}
