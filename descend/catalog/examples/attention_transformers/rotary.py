"""Worked examples of rope."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from descend.catalog.examples import Compute, Inputs, real
from descend.ops.attention.dot_product import scores
from descend.ops.attention.rotary import frequencies, rotate_pairs, rotation


def rotate(x: Tensor, angles: Tensor) -> Tensor:
    return rotate_pairs(x, angles.cos(), angles.sin())


def plane(i: Inputs) -> Inputs:
    x, angle = real(i["x"]), real([i["theta"]])
    by_matrix = rotation(angle) @ x
    return {"Rx": by_matrix, "expanded": rotate(x, angle), "norm_before": x.norm(), "norm_after": by_matrix.norm()}


def relativity(i: Inputs) -> Inputs:
    q, k, m, n, theta = real(i["q"]), real(i["k"]), i["m"], i["n"], i["theta"]

    def r(position: int) -> Tensor:
        return rotation(real([position * theta]))

    def score(m: int, n: int) -> Tensor:
        return rotate(q, real([m * theta])) @ rotate(k, real([n * theta]))

    product = r(m).T @ r(n)
    return {
        "score": score(m, n),
        "q_R_{m-n}_k": q @ r(m - n) @ k,
        "q_R_{n-m}_k": q @ r(n - m) @ k,
        "error_of_R_{m-n}": (product - r(m - n)).abs().max(),
        "R_{n-m}_exact": torch.allclose(product, r(n - m)),
        "shift_invariant": torch.allclose(score(m, n), score(m + 10, n + 10)),
    }


def efficient(i: Inputs) -> Inputs:
    x, angles = real(i["x"]), i["m"] * frequencies(i["d"], dtype=torch.float64)
    by_matrix, elementwise = rotation(angles) @ x, rotate(x, angles)
    return {
        "matrix_product": by_matrix,
        "elementwise": elementwise,
        "equal": torch.allclose(by_matrix, elementwise),
        "blocks": len(angles),
    }


def mf_scores(i: Inputs) -> Inputs:
    q, k = real(i["q"]), real(i["k"])
    theta = frequencies(i["d_k"], i["base"], torch.float64)

    def score(a: int, b: int) -> Tensor:
        return scores(rotate(q, a * theta)[None], rotate(k, b * theta)[None])[0, 0]

    (a, b), (c, d) = i["pairs"]
    return {
        f"score_{a}_{b}": score(a, b),
        f"score_{c}_{d}": score(c, d),
        f"score_relative_{b - a}": score(0, b - a),
        "norm_preserved": math.isclose(rotate(q, a * theta).norm(), q.norm()),
    }


EXAMPLES: dict[str, Compute] = {
    "DLN-RoPE-rotation": plane,
    "DLN-RoPE-relativity": relativity,
    "DLN-RoPE-efficient": efficient,
    "MF-38.5-rope": mf_scores,
}

SET_ASIDE: dict[str, str] = {}
