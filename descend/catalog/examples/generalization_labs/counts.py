"""Worked examples of counts and bounds: separable labelings, pieces, parity, finite classes."""

from __future__ import annotations

import torch

from descend.catalog.examples import Compute, Inputs, real
from descend.theory.generalization.depth import (
    count_pieces,
    fold,
    formula_terms,
    list_bits,
    shallow_parity,
    shallow_units,
    tent_units,
    threshold_parity,
    tree_parity,
)
from descend.theory.generalization.dichotomies import count_dichotomies, count_separable, separable_share
from descend.theory.generalization.regions import count_on_line
from descend.theory.generalization.risk import split_error
from descend.theory.generalization.uniform_convergence import finite_class_bound


def dichotomies(i: Inputs) -> Inputs:
    n, points = i["N"], real(i["points"])
    counts = [count_dichotomies(p, n + 1) for p in i["P"]]
    return {
        "dichotomies": [2**p for p in i["P"]],
        "separable_formula": counts,
        "separable_brute_force_LP": [count_separable(points[:p]) for p in i["P"]],
        "fraction": [separable_share(p, n + 1) for p in i["P"]],
    }


def share(i: Inputs) -> Inputs:
    return {"probability": [separable_share(p, i["N"]) for p in i["P"]]}


def folded_pieces(times: int) -> int:
    return count_pieces(fold(torch.linspace(0, 1, 2 ** (times + 2) + 1, dtype=torch.float64), times))


def tent_pieces(i: Inputs) -> Inputs:
    pieces = [folded_pieces(k) for k in i["k"]]
    return {
        "linear_pieces": pieces,
        "deep_relu_units": [tent_units(k) for k in i["k"]],
        "shallow_relu_units_needed": [shallow_units(p) for p in pieces],
    }


def linear_regions(i: Inputs) -> Inputs:
    """Counted by activation patterns of the folding network itself."""
    hidden = (torch.ones(2, 1, dtype=torch.float64), real([0.0, -0.5]))
    mixed = (real([[2.0, -4.0], [2.0, -4.0]]), real([0.0, -0.5]))
    out = (real([[2.0, -4.0]]), real([0.0]))
    units = [tent_units(n) for n in i["L"]]
    return {
        "pieces": [count_on_line([hidden, *[mixed] * (n - 1), out], real([0.0]), real([1.0])) for n in i["L"]],
        "units": units,
        "max_pieces_one_hidden_layer_same_units": [n + 1 for n in units],
    }


def exact_on_all(network: object, n: int) -> bool:
    bits = list_bits(n)
    return bool(torch.equal(network(bits), bits.sum(-1) % 2))  # type: ignore[operator]


def parity_tree(i: Inputs) -> Inputs:
    n = i["n"]
    return {
        "tree_depth_value": n.bit_length() - 1,
        "xor_gates": n - 1,
        "tree_relu_units": 2 * (n - 1),
        "tree_correct_on_all_inputs": exact_on_all(tree_parity, n),
        "shallow_relu_units": n,
        "shallow_correct_on_all_inputs": exact_on_all(shallow_parity, n),
        "dnf_terms": formula_terms(n),
    }


def parity(i: Inputs) -> Inputs:
    n = i["n"]
    return {
        "one_hidden_layer_units": n,
        "one_hidden_layer_exact": exact_on_all(threshold_parity, n),
        "one_hidden_layer_relu_exact": exact_on_all(shallow_parity, n),
        "tree_exact": exact_on_all(tree_parity, n),
        "tree_hidden_units": 2 * (n - 1),
        "tree_levels": n.bit_length() - 1,
        "dnf_terms": formula_terms(n),
    }


def finite_class(i: Inputs) -> Inputs:
    return {"bound": [[finite_class_bound(h, n, i["delta"]) for n in i["N"]] for h in i["class_size"]]}


def two_predictors(i: Inputs) -> Inputs:
    predictions, truth = real(i["predictions_equally_likely"])[:, None], real([i["f_star"]])
    parts = split_error(predictions, truth)
    mse = (predictions - truth).square().mean()
    return {"mse": mse, "bias_sq": parts.bias_squared[0], "variance": parts.variance[0]}


EXAMPLES: dict[str, Compute] = {
    "DLN-Cover-dichotomies": dichotomies,
    "DLN-Cover-probability": share,
    "S940-1.4-depth-separation": tent_pieces,
    "MF-9.2.2-linear-regions": linear_regions,
    "MF-9.2.3-parity": parity_tree,
    "VOM-5.2.1-parity": parity,
    "DLD-3.1-finite-class-bound": finite_class,
    "MF-9.4.2-bias-variance": two_predictors,
}
SET_ASIDE: dict[str, str] = {}
