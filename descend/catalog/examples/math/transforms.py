"""Worked examples of the family math: what matrices do to space."""

from __future__ import annotations

from fractions import Fraction

import torch
from torch import Tensor

from descend.catalog.examples import Compute, Inputs, real
from descend.ops.expansion import lens, with_squares
from descend.ops.math import exact
from descend.ops.math.matrices import coordinates, null_space, row_view
from descend.ops.math.transforms import (
    characteristic,
    determinant,
    eigen,
    image,
    orientation,
    power_by_eigen,
    rotation,
    signed_area,
)
from descend.ops.math.vectors import dot, norm
from descend.theory.perceptron import separable

SQUARE = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]  # the corners of the unit square, one after the other


def gaussian(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


# Determinants


def only_determinant(i: Inputs) -> Inputs:
    return {"det": determinant(real(i["A"]))}


def parallelogram(i: Inputs) -> Inputs:
    a, square = real(i["A"]), real(SQUARE)
    corners = image(a, square)
    return {"corners": corners[[0, 1, 3, 2]], "area": signed_area(corners).abs(), "det": determinant(a)}


def triangle(i: Inputs) -> Inputs:
    corners = real(i["triangle"])
    return {"before": signed_area(corners).abs(), "after": signed_area(image(real(i["A"]), corners)).abs()}


def flattened_square(i: Inputs) -> Inputs:
    """The text lists 0, the images of (1,0) and (0,1), and their sum."""
    b = real(i["B"])
    return {"corners": image(b, real(SQUARE))[[0, 1, 3, 2]], "det": determinant(b)}


def mirrored_square(i: Inputs) -> Inputs:
    r = real(i["R"])
    return {"det": determinant(r), "area": signed_area(image(r, real(SQUARE))).abs()}


def corner_order(i: Inputs) -> Inputs:
    before = real(i["corners"])
    after = image(real(i["R"]), before)
    return {
        "before": orientation(before),
        "after": orientation(after),
        "signed_area_before": signed_area(before),
        "signed_area_after": signed_area(after),
    }


# Eigenvalues


def whole_basis(a: Tensor) -> tuple[Tensor, Tensor]:
    """Real eigenvalues, and eigenvectors in the rows with first component 1, as the book writes them."""
    values, vectors = eigen(a)
    return values.real, (vectors / vectors[:1]).real.mT


def eigenpairs(i: Inputs) -> Inputs:
    a = real(i["A"])
    values, (v1, v2) = whole_basis(a)
    moved = {"Av1": row_view(a, v1)[1], "Av2": row_view(a, v2)[1]}
    return {"charpoly": characteristic(a), "eigenvalues": values, **moved}


def eigenbasis(i: Inputs) -> Inputs:
    a, x = real(i["A"]), real(i["x"])
    return {
        "c": coordinates(x, whole_basis(a)[1]),
        "Ax": power_by_eigen(a, x, 1),
        "direct": row_view(a, x)[1],
    }


def power_100(i: Inputs) -> Inputs:
    k = i["power"]
    values, basis = (
        exact.exact([Fraction(n).limit_denominator(1000) for n in part.flatten().tolist()]).reshape(part.shape)
        for part in whole_basis(real(i["A"]))
    )
    x = exact.exact(i["x"])
    direct = exact.power(exact.exact(i["A"]), k) @ x
    by_eigenbasis = (exact.coordinates(x, basis) * values**k) @ basis
    return {"equal": bool((direct == by_eigenbasis).all()), "A100x": [float(n) for n in direct]}


def rotation_eigenvalues(i: Inputs) -> Inputs:
    theta = real(i["theta"])
    values, _ = eigen(rotation(theta))
    circle = torch.polar(torch.ones(2, dtype=torch.float64), torch.stack([theta, -theta]))
    return {"max_abs_difference": (values - circle).abs().max(), "real": values.real, "imag": values.imag}


def kept_lengths(i: Inputs) -> Inputs:
    """The rotation and the mirror on two random vectors."""
    turn, mirror = rotation(real(i["rotation_theta"])), real(i["reflection"])
    vectors = gaussian(2, 2)
    moved = [(image(q, vectors), vectors) for q in (turn, mirror)]
    return {
        "det_rotation": determinant(turn),
        "det_reflection": determinant(mirror),
        "length_change": max((norm(after) - norm(before)).abs().max() for after, before in moved),
        "dot_change": max((dot(*after) - dot(*before)).abs() for after, before in moved),
    }


# Lenses


def compressor(i: Inputs) -> Inputs:
    w = gaussian(*i["W_shape"])
    report, lost = lens(w), null_space(w)[0]
    return {
        "output_dim": report.outputs,
        "null_image": norm(row_view(w, lost)[1]),
        "rank": report.rank,
        "nullity": report.nullity,
    }


def expander(i: Inputs) -> Inputs:
    report = lens(gaussian(*i["W_shape"]))
    return {"image_dim": report.rank, "ambient_dim": report.outputs}


def mixer(i: Inputs) -> Inputs:
    return {"nullity": lens(gaussian(*i["W_shape"])).nullity}


def lifting(i: Inputs) -> Inputs:
    x, label = real(i["x"])[:, None], torch.tensor(i["label"])
    return {
        "separable_1d": separable(x, 2 * label - 1),
        "separable_lifted": separable(with_squares(x), 2 * label - 1),
    }


EXAMPLES: dict[str, Compute] = {
    "VOM-1.5.2-det-diag": only_determinant,
    "VOM-1.5.2-parallelogram": parallelogram,
    "VOM-1.5.2-triangle": triangle,
    "VOM-1.5.2-collapse": flattened_square,
    "VOM-1.5.2-reflection": mirrored_square,
    "VOM-1.5.2-orientation": corner_order,
    "VOM-1.5.2-det3": only_determinant,
    "VOM-1.5.3-eigen": eigenpairs,
    "VOM-1.5.3-eigenbasis": eigenbasis,
    "VOM-1.5.3-power100": power_100,
    "VOM-1.5.3-rotation": rotation_eigenvalues,
    "VOM-1.5.4-orthogonal": kept_lengths,
    "VOM-1.6.1-compressor": compressor,
    "VOM-1.6.2-expander": expander,
    "VOM-1.6.2-lifting": lifting,
    "VOM-1.6.3-mixer": mixer,
}

SET_ASIDE: dict[str, str] = {}
