"""Worked examples of the family math: products, linearity, basis and rank."""

from __future__ import annotations

import torch

from descend.catalog.examples import Compute, Inputs, real
from descend.ops.math.matrices import (
    column_view,
    coordinates,
    frobenius,
    frobenius_by_trace,
    from_coordinates,
    independent,
    product,
    rank,
    row_view,
    scaling,
)
from descend.ops.math.transforms import image

# Products and norms


def transpose_frobenius(i: Inputs) -> Inputs:
    a, b = real(i["A"]), real(i["B"])
    return {
        "AB_T": product(a, b)[1].mT,
        "BT_AT": product(b.mT, a.mT)[1],
        "fro_sum": frobenius(a),
        "fro_trace": frobenius_by_trace(a),
    }


def by_rows(i: Inputs) -> Inputs:
    terms, y = row_view(real(i["A"]), real(i["x"]))
    return {"terms": terms, "y": y}


def by_columns(i: Inputs) -> Inputs:
    parts, y = column_view(real(i["A"]), real(i["x"]))
    return {"parts": parts, "y": y}


def noncommutative(i: Inputs) -> Inputs:
    a, b = real(i["A"]), real(i["B"])
    return {"AB": product(a, b)[1], "BA": product(b, a)[1]}


def frobenius_30(i: Inputs) -> Inputs:
    a = real(i["A"])
    return {"squared": product(a.mT, a)[1].trace(), "norm": frobenius(a)}


# Linearity, basis, rank


def square_not_linear(i: Inputs) -> Inputs:
    x = real(i["x"])
    f_2x, twice_f = scaling(torch.square, 2.0, x)
    return {"coef_f_of_2x": f_2x / x**2, "coef_2f": twice_f / x**2}


def affine_not_linear(i: Inputs) -> Inputs:
    return {"f0": scaling(lambda x: x + 1, 0.0, real(i["x"]))[0]}


def dependence(i: Inputs) -> Inputs:
    v1, v2, v3 = (real(i[name]) for name in ("v1", "v2", "v3"))
    pair = torch.stack([v1, v2])
    return {
        "coefficients": coordinates(v3, pair),
        "independent_pair": independent(pair),
        "independent_triple": independent(torch.stack([v1, v2, v3])),
    }


def basis_change(i: Inputs) -> Inputs:
    basis = torch.stack([real(i["b1"]), real(i["b2"])])
    c = coordinates(real(i["v"]), basis)
    (part1, part2), _ = column_view(basis.mT, c)
    return {"c": c, "part1": part1, "part2": part2, "reconstruction": from_coordinates(c, basis)}


def two_ranks(i: Inputs) -> Inputs:
    return {"rank_A": rank(real(i["A"])), "rank_B": rank(real(i["B"]))}


def collapsed_inputs(i: Inputs) -> Inputs:
    return {"Bx": image(real(i["B"]), real(i["x"]))}


EXAMPLES: dict[str, Compute] = {
    "MF-1.1.4-transpose-frobenius": transpose_frobenius,
    "VOM-1.3-matvec-row": by_rows,
    "VOM-1.3-matvec-col": by_columns,
    "VOM-1.3-noncommutative": noncommutative,
    "VOM-1.4.4-frobenius": frobenius_30,
    "VOM-1.1-square-not-linear": square_not_linear,
    "VOM-1.1-affine-not-linear": affine_not_linear,
    "VOM-1.1-dependence": dependence,
    "VOM-1.1-basis-change": basis_change,
    "VOM-1.5.1-rank": two_ranks,
    "VOM-1.5.1-collapse": collapsed_inputs,
}

SET_ASIDE: dict[str, str] = {}
