"""Worked examples of the family math: vectors."""

from __future__ import annotations

import math
from itertools import combinations

from torch import Tensor

from descend.catalog.examples import Compute, Inputs, real
from descend.ops.math.vectors import (
    cosine,
    cosine_by_sides,
    distance,
    dot,
    dot_by_angle,
    homogeneity,
    norm,
    pairwise_cosine,
    unit,
)

WORDS = ("cat", "dog", "fish", "car", "truck")  # the rows of VOM 7.2.1's table


def three_norms(v: Tensor) -> Inputs:
    return {"L1": norm(v, 1), "L2": norm(v), "Linf": norm(v, math.inf)}


def mf_norms(i: Inputs) -> Inputs:
    v = real(i["v"])
    return {"l1": norm(v, 1), "l2": norm(v), "linf": norm(v, math.inf), "lp_p50": norm(v, 50)}


def length(i: Inputs) -> Inputs:
    return {"norm": norm(real(i["v"]))}


def shifted_norm(i: Inputs) -> Inputs:
    v = real(i["v"])
    f_2v, twice_f_v = homogeneity(lambda v: norm(v) + 1, 2.0, v)
    return {"offset_f_2v": f_2v - 2 * norm(v), "offset_2f_v": twice_f_v - 2 * norm(v)}


def plain_sum(i: Inputs) -> Inputs:
    """The sum of the components, as the dot product with ones."""
    v = real(i["v"])
    return {"g": dot(v, v.new_ones(len(v)))}


def norms_a(i: Inputs) -> Inputs:
    return three_norms(real(i["v"]))


def norms_b(i: Inputs) -> Inputs:
    v = real(i["v"])
    return {**three_norms(v), "L2_squared": dot(v, v)}


def normalize(i: Inputs) -> Inputs:
    v = real(i["v"])
    return {"norm": norm(v), "unit": unit(v), "unit_norm": norm(unit(v))}


def cosine_and_distance(i: Inputs) -> Inputs:
    a, b, c = (real(i[name]) for name in "ABC")
    return {
        "cos_AB": cosine(a, b),
        "euclid_AB": distance(a, b),
        "cos_BC": cosine(b, c),
        "euclid_BC": distance(b, c),
    }


def three_angles(i: Inputs) -> Inputs:
    a, b = real(i["a"]), real(i["orthogonal_b"])
    return {"cos_parallel": cosine(a, 3 * a), "cos_orthogonal": cosine(a, b), "cos_antiparallel": cosine(a, -2 * a)}


def cosine_extremes(i: Inputs) -> Inputs:
    """The dot product of unit vectors at these angles."""
    return {"cos": dot_by_angle(real(1.0), real(1.0), real(i["theta_deg"]).deg2rad())}


def law_of_cosines(i: Inputs) -> Inputs:
    u, v = real(i["u"]), real(i["v"])
    return {"difference": dot(u, v) - norm(u) * norm(v) * cosine_by_sides(u, v)}


def cat_dog(i: Inputs) -> Inputs:
    u, v = real(i["u"]), real(i["v"])
    return {"dot": dot(u, v), "norms": [norm(u), norm(v)], "product": norm(u) * norm(v), "sim": cosine(u, v)}


def cat_car(i: Inputs) -> Inputs:
    u, v = real(i["u"]), real(i["v"])
    return {"dot": dot(u, v), "product": norm(u) * norm(v), "sim": cosine(u, v)}


def similarity_order(i: Inputs) -> Inputs:
    s = pairwise_cosine(real(i["E"]))
    cosines = {f"{WORDS[a]}-{WORDS[b]}": s[a, b] for a, b in combinations(range(len(WORDS)), 2)}
    closest = cosines["cat-dog"] > max(cosines["cat-car"], cosines["dog-car"])
    return {"claim": bool(closest), "cosines": cosines}


EXAMPLES: dict[str, Compute] = {
    "MF-1.1.1-norms": mf_norms,
    "VOM-1.4-length": length,
    "VOM-1.4-not-a-norm-shift": shifted_norm,
    "VOM-1.4-not-a-norm-sum": plain_sum,
    "VOM-1.4.1-norms-a": norms_a,
    "VOM-1.4.1-norms-b": norms_b,
    "VOM-1.4.3-normalize": normalize,
    "DLN-Cosine-vs-Euclid": cosine_and_distance,
    "MF-1.1.2-angle": three_angles,
    "VOM-1.2-cosine-extremes": cosine_extremes,
    "VOM-1.2-law-of-cosines": law_of_cosines,
    "VOM-7.2.1-cos-cat-dog": cat_dog,
    "VOM-7.2.1-cos-cat-car": cat_car,
    "VOM-7.2.1-similarity-order": similarity_order,
}

SET_ASIDE: dict[str, str] = {}
