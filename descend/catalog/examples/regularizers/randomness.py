"""Worked examples of the family regularizers: dropout, noise, label smoothing, ensembles."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from descend.catalog.examples import Compute, Inputs, real
from descend.classic.ensembles import ambiguity, distinct_share
from descend.losses.classification import smooth_targets
from descend.nn.dropout import (
    PlainDropout,
    all_masks,
    drop,
    drop_variance,
    geometric_mean,
    inverted_drop,
    keeping,
    mask_probabilities,
)
from descend.nn.noise import expected_square, noise_penalty

# Dropout and noise


def scaled_weights(i: Inputs) -> Inputs:
    a, w, keep = real(i["a"]), real(i["w"]), i["p_keep"]
    masks = all_masks(len(a))
    return {
        "masks": len(masks),
        "expected_input": mask_probabilities(masks, keep) @ (drop(a, masks) @ w),
        "scaled_weights": keeping(keep).eval()(a) @ w,
    }


def torch_drops_p(i: Inputs) -> Inputs:
    """The share is given to three digits."""
    torch.manual_seed(i["seed"])
    x, layer = torch.ones(i["n"]), nn.Dropout(i["p"])
    y = layer(x)
    return {
        "fraction_dropped": round(float((y == 0).double().mean()), 3),
        "survivor_value": y.max(),
        "eval_output_unchanged": torch.equal(layer.eval()(x), x),
    }


def a_given_mask(i: Inputs) -> Inputs:
    w, b = real(i["W2"]), real(i["b2"])
    h = PlainDropout()(real(i["h"]), real(i["mask"]))
    return {"h_drop": h, "products": [*(w * h), b], "z_drop": F.linear(h, w[None], b[None])[0]}


def scaling_at_test(i: Inputs) -> Inputs:
    h, p = real(i["h"]), i["p"]
    masks = all_masks(len(h))
    weight = mask_probabilities(masks, 1 - p)
    return {
        "expected_train": weight @ drop(h, masks),
        "test_scaled": PlainDropout(p).eval()(h),
        "expected_inverted": weight @ inverted_drop(h, masks, p),
    }


def all_subnetworks(i: Inputs) -> Inputs:
    h, p, w = real(i["h"]), i["p"], real(i["w"])
    masks = all_masks(len(h))
    weight, dropped = mask_probabilities(masks, 1 - p), inverted_drop(h, masks, p)
    mean = weight @ dropped
    z = dropped @ w
    logits = torch.stack([z, torch.zeros_like(z)], -1)
    return {
        "E_htilde": mean,
        "Var_htilde": weight @ (dropped - mean).square(),
        "variance_formula_h2_p_over_1mp": drop_variance(h, p),
        "subnetworks": len(masks),
        "renormalised_geometric_mean": geometric_mean(logits, weight)[0],
        "deterministic_output": (nn.Dropout(p).eval()(h) @ w).sigmoid(),
    }


def noise_as_l2(i: Inputs) -> Inputs:
    w, sigma, x, t = (real(i[name]) for name in ("w", "sigma", "x", "t"))
    return {
        "clean_error": expected_square(w, x, t, torch.zeros_like(sigma)),
        "penalty": noise_penalty(w, sigma),
        "expected": expected_square(w, x, t, sigma),
    }


# Label smoothing


def smoothed_targets(i: Inputs) -> Inputs:
    q = smooth_targets(torch.tensor(7), i["V"], i["eps"], torch.float64)
    return {"sums_to_one": bool((q.sum() - 1).abs() < 1e-12), "target_correct": q[7], "target_other": q[0]}


def glossary_targets(i: Inputs) -> Inputs:
    """q_y is linear in ε, so two of its values tell which ε gives the glossary's 0.9."""
    targets = lambda eps: smooth_targets(torch.tensor(1), i["V"], eps, torch.float64)
    eps = (targets(0.0)[1] - 0.9) / (targets(0.0)[1] - targets(1.0)[1])
    return {"targets": targets(float(eps)), "eps_that_gives_it": eps, "targets_at_eps_0.1": targets(0.1)}


# Ensembles


def bootstrap_sample(i: Inputs) -> Inputs:
    """At n = 10⁸ the share has the digits of its limit."""
    drawn, n = i["sample"], len(i["data"])
    return {
        "size": len(drawn),
        "distinct": len(set(drawn)),
        "expected_distinct_fraction_n5": distinct_share(n),
        "limit": distinct_share(10**8),
    }


def disagreement(i: Inputs) -> Inputs:
    found = ambiguity(real(i["predictions"]), real(i["targets"]))
    return {
        "individual_mse": found.individual,
        "mean_individual": found.mean,
        "disagreement": found.disagreement,
        "ensemble_mse": found.ensemble,
    }


EXAMPLES: dict[str, Compute] = {
    "DLN-Dropout-scaling": scaled_weights,
    "DLN-Dropout-pytorch-p": torch_drops_p,
    "MF-7.5.1-dropout": a_given_mask,
    "MF-7.5.2-test-scaling": scaling_at_test,
    "S940-2.4-dropout-expectation": all_subnetworks,
    "DLN-Noise-as-L2": noise_as_l2,
    "VOM-13.9.2-smooth-targets": smoothed_targets,
    "VOM-glossary-label-smoothing": glossary_targets,
    "DLN-Bagging-bootstrap": bootstrap_sample,
    "DLN-Ensemble-ambiguity": disagreement,
}

SET_ASIDE: dict[str, str] = {
    "DLN-Noise-as-L2:monte_carlo_400000": "a random estimate of `expected`, generator unknown; a test bounds ours",
}
