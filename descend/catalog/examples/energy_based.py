"""Worked examples of the family energy-based."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from descend.catalog.examples import Compute, Inputs, real
from descend.data.text.lexicons import ENGLISH, FRENCH
from descend.data.toys.mixture import Mixture
from descend.losses.energy import energy_hinge
from descend.ops.energy.gibbs import (
    gibbs,
    grad_log_likelihood,
    grad_log_partition,
    likelihood_ratio,
    log_partition,
    normalise_exponential,
)
from descend.ops.math.calculus import numerical_gradient
from descend.sampling.langevin import ascend_score
from descend.text.word_breaks import Lexicon, count_segmentations, only_letters, segment_in_any
from descend.theory.langevin import (
    count_updates,
    divergence_gradient,
    likelihood_gradient,
    second_moment,
    stationary_variance,
    stationary_variance_by_delta,
)

LONG = 10_000  # steps after which a chain is stationary to twelve digits


def volumes(i: Inputs) -> Inputs:
    """Z on a fine grid against the closed forms."""
    line = torch.linspace(-30, 30, 60001, dtype=torch.float64)
    half = (torch.arange(200_000, dtype=torch.float64) + 0.5) / 10_000
    return {
        "gaussian_quadrature": log_partition((line - i["mu"]).square() / (2 * i["sigma2"]), 0.001).exp(),
        "gaussian_formula": math.sqrt(2 * math.pi * i["sigma2"]),
        "exponential_quadrature": log_partition(i["lambda"] * half, 1e-4).exp(),
        "exponential_formula": 1 / i["lambda"],
    }


def inflation(i: Inputs) -> Inputs:
    return {"p": normalise_exponential(real(i["scores"])), "p_inflated": normalise_exponential(real(i["inflated"]))}


def energy_sign(i: Inputs) -> Inputs:
    return {"p": gibbs(real(i["energies"]))}


def linear_energies(i: Inputs) -> tuple[Tensor, Tensor]:
    """E(y) = θ·φ(y) of every y, and θ."""
    theta = real(i["theta"]).requires_grad_()
    return real(i["phi"]) @ theta, theta


def gradient(i: Inputs) -> Inputs:
    energies, theta = linear_energies(i)
    seen, phi = i["y_observed_0based"], real(i["phi"])

    def log_p(at: Tensor) -> Tensor:
        return gibbs(phi @ at)[seen].log()

    return {
        "formula": grad_log_likelihood(energies[None], torch.tensor([seen]), [theta])[0],
        "finite_difference": [round(v, 7) for v in numerical_gradient(log_p, theta.detach()).tolist()],
        "partition": log_partition(energies).exp(),
    }


def log_partition_sign(i: Inputs) -> Inputs:
    energies, theta = linear_energies(i)
    (right,) = grad_log_partition(energies, [theta])
    (direct,) = torch.autograd.grad(log_partition(energies), theta)
    return {"right_value": direct, "value_of_printed_middle_line": -direct, "final_printed_result": right}


def stationary(i: Inputs) -> Inputs:
    return {
        "variance": [second_moment(1.0, eta, LONG) for eta in i["eta"]],
        "closed_form": [stationary_variance(eta) for eta in i["eta"]],
    }


def stationary_by_delta(i: Inputs) -> Inputs:
    return {
        "stationary_variance": [second_moment(1.0, delta / 2, LONG) for delta in i["delta"]],
        "closed_form": [stationary_variance_by_delta(delta) for delta in i["delta"]],
    }


def updates(i: Inputs) -> Inputs:
    return {
        "updates_k_0_to_K": count_updates(0, i["K"]),
        "updates_k_0_to_K_minus_1": count_updates(0, i["K"] - 1),
    }


def divergence(i: Inputs) -> Inputs:
    theta, m = i["theta"], i["data_second_moment"]
    found = {f"cd_{k}": divergence_gradient(theta, m, i["eta"], k) for k in i["K"]}
    return {"true": likelihood_gradient(theta, m), **found}


def ascent(i: Inputs) -> Inputs:
    modes = Mixture(real([0.5, 0.5]), real([[-3.0], [3.0]]), real([1.0, 1.0]))
    starts = real([[float(x)] for x in i["starts"]])
    ends = ascend_score(modes.score, starts, i["eta"], i["steps"])[-1, :, 0]
    return {"ends": [round(v, 4) for v in ends.tolist()], "true_std_per_mode": modes.sigma[0]}


def ratio(i: Inputs) -> Inputs:
    plus, minus = real(i["E_plus"]), real(i["E_minus"])
    with_z = ((-plus).exp() / i["Z"]) / ((-minus).exp() / i["Z"])
    return {"ratio": with_z, "formula": likelihood_ratio(plus, minus)}


def hinge(i: Inputs) -> Inputs:
    plus, minus = real(float(i["E_plus"])), real(float(i["E_minus"]))
    return {
        "loss_m0": energy_hinge(plus, minus, i["m"][0]),
        "loss_m1": energy_hinge(plus, minus, i["m"][1]),
        "loss_gap_2_m1": energy_hinge(plus, minus + 2, i["m"][1]),
    }


def sentences(i: Inputs) -> Inputs:
    lexicons = {"English": Lexicon.by_rank(ENGLISH), "French": Lexicon.by_rank(FRENCH)}
    found = [segment_in_any(text, lexicons)[1] for text in i["unsegmented"]]
    pairs = zip(found, i["unsegmented"], strict=True)
    return {
        "letters_agree": [only_letters(one.text) == only_letters(text) for one, text in pairs],
        "words": [len(one.words) for one in found],
        "boundaries": [len(one.words) - 1 for one in found],
        "possible_segmentations": [str(count_segmentations(text)) for text in i["unsegmented"]],
    }


EXAMPLES: dict[str, Compute] = {
    "DLN-EBM-volumes": volumes,
    "DLN-EBM-score-inflation": inflation,
    "DLN-EBM-energy-sign": energy_sign,
    "DLN-EBM-gradient": gradient,
    "DLN-EBM-logZ-sign": log_partition_sign,
    "DLN-Langevin-stationary": stationary,
    "DLN-Langevin-steps": updates,
    "S940-11.5-langevin-bias": stationary_by_delta,
    "DLN-CD-bias": divergence,
    "DLN-Score-gradient-ascent": ascent,
    "DLN-EBM-ratio": ratio,
    "DLN-EBM-hinge-collapse": hinge,
    "DLN-LVEBM-segmentation": sentences,
}

SET_ASIDE: dict[str, str] = {}
