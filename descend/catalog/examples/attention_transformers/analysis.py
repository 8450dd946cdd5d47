"""Worked examples of attention-permutation-equivariance, attention-properties and attention-maps-analysis."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from descend.catalog.examples import Compute, Inputs, real
from descend.catalog.systems import examples
from descend.metrics.attention_maps import report
from descend.ops.attention.dot_product import attention, unscaled_attention
from descend.ops.attention.properties import equivariance_error, invariance_error, joint_rank


def attention_layer(w: list[Tensor]) -> Callable[[Tensor], Tensor]:
    """X -> attention(X W^Q, X W^K, X W^V)."""
    return lambda x: attention(*(x @ matrix for matrix in w))[0]


def dln_permutation(i: Inputs) -> Inputs:
    """The projections are drawn after X, in the order Q, K, V."""
    x, order = real(i["X"]), torch.tensor(i["permutation"])
    random = np.random.default_rng(i["seed"])
    drawn = [torch.tensor(random.normal(size=x.shape))] + [torch.tensor(random.normal(size=(3, 3))) for _ in range(3)]
    assert torch.allclose(drawn[0], x)
    layer = attention_layer(drawn[1:])
    return {
        "equivariance_error_below_1e-12": equivariance_error(layer, x, order) < 1e-12,
        "invariance_error": invariance_error(layer, x, order),
    }


def vom_equivariance(i: Inputs) -> Inputs:
    random = torch.Generator().manual_seed(0)
    x, *w = (torch.randn(shape, generator=random, dtype=torch.float64) for shape in ((i["n"], 4), *((4, 4),) * 3))
    return {"max_abs_difference": equivariance_error(attention_layer(w), x, torch.tensor(i["permutation_0based"]))}


def vom_permutation(i: Inputs) -> Inputs:
    x, order = real(i["X"]), torch.tensor(i["perm"])
    given = examples()["VOM-9.3-qkv"].inputs
    layer = attention_layer([real(given[name]) for name in ("WQ", "WK", "WV")])
    return {
        "permutation_invariant": invariance_error(layer, x, order) < 1e-12,
        "permutation_equivariant": equivariance_error(layer, x, order) < 1e-12,
        "pooled_invariant": invariance_error(lambda x: layer(x).mean(-2), x, order) < 1e-12,
    }


def span(i: Inputs) -> Inputs:
    x = real(i["X"])
    random = np.random.default_rng(i["seed"])
    w = [torch.tensor(random.normal(size=(3, 3))) for _ in range(3)]
    bare, mixed, values = unscaled_attention(x, x, x)[0], attention_layer(w)(x), x @ w[2]
    return {
        "rank_X": joint_rank(x, x),
        "rank_X_and_Z_without_projections": joint_rank(x, bare),
        "rank_X_and_Z_with_WV": joint_rank(x, mixed),
        "rank_XWV_and_Z_with_WV": joint_rank(values, mixed),
    }


def cat_sat(i: Inputs) -> Inputs:
    found = report(real(i["A"]), i["tokens"])
    return {
        "row_sums": found.row_sums,
        "a_sat_cat": found.weight("sat", "cat"),
        "a_cat_sat": found.weight("cat", "sat"),
        "symmetric": found.asymmetry < 1e-12,
    }


EXAMPLES: dict[str, Compute] = {
    "DLN-Attention-permutation": dln_permutation,
    "VOM-8.9-equivariance": vom_equivariance,
    "VOM-11.5-permutation": vom_permutation,
    "DLN-Encoder-span": span,
    "VOM-9.5-cat-sat": cat_sat,
}

SET_ASIDE: dict[str, str] = {}
