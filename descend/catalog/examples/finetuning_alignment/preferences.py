"""Worked examples of preferences: Bradley-Terry, the loss of a reward model, the best policy near a reference, DPO."""

from __future__ import annotations

import torch
from torch import Tensor

from descend.catalog.examples import Compute, Inputs
from descend.classic.bradley_terry import strength_share, win_probability
from descend.losses.preference import dpo_loss, pairwise_loss
from descend.theory.regularised_policy import (
    best_policy,
    implied_reward,
    kl_to_reference,
    log_partition,
    regularised_value,
    rlhf_loss,
)


def tensor(values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def strengths(i: Inputs) -> Inputs:
    first, second = tensor(i["p_i"]), tensor(i["p_j"])
    return {"P": strength_share(first, second), "via_sigmoid": win_probability(first.log(), second.log())}


def eighty_eight(i: Inputs) -> Inputs:
    p = win_probability(tensor(i["r_A"]), tensor(i["r_B"]))
    return {"difference": i["r_A"] - i["r_B"], "P": p, "wins_of_100": 100 * p}


def shifted(i: Inputs) -> Inputs:
    better, worse = (tensor(i[name]).requires_grad_() for name in ("r_w", "r_l"))
    loss = pairwise_loss(better, worse)
    there, back = torch.autograd.grad(loss, (better, worse))
    moved = pairwise_loss(better + i["shift"], worse + i["shift"])
    return {
        "unchanged": bool(torch.isclose(loss, moved)),
        "loss_right_order": loss,
        "loss_wrong_order": pairwise_loss(worse, better),
        "loss_at_equal": pairwise_loss(better, better),
        "dloss_dr_w": there,
        "dloss_dr_l": back,
    }


def objective(i: Inputs) -> Inputs:
    log_ref, r, beta = tensor(i["pi_ref"]).log(), tensor(i["reward"]), i["beta"]
    best = best_policy(log_ref, r, beta)
    corner = torch.full_like(r, -torch.inf).index_fill(0, r.argmax(), 0.0)
    at_ref, at_corner, at_best = (regularised_value(pi, log_ref, r, beta) for pi in (log_ref, corner, best))
    return {
        "optimum_beats_others": bool(at_best > max(at_ref, at_corner)),
        "J_ref": at_ref,
        "J_corner": at_corner,
        "J_star": at_best,
        "beta_log_Z": beta * log_partition(log_ref, r, beta),
        "KL_star": kl_to_reference(best, log_ref),
    }


def closed_form(i: Inputs) -> Inputs:
    log_ref, r, beta = tensor(i["pi_ref"]).log(), tensor(i["reward"]), i["beta"]
    best, log_z = best_policy(log_ref, r, beta), log_partition(log_ref, r, beta)
    back = implied_reward(best, log_ref, beta) + beta * log_z
    return {
        "reward_recovered": bool(torch.allclose(back, r)),
        "pi_star": best.exp(),
        "Z": log_z.exp(),
        "reward": back,
    }


def dpo(i: Inputs) -> Inputs:
    ratio = tensor(i["pi"]).log() - tensor(i["pi_ref"]).log()
    won, lost, beta = ratio[i["winner"]], ratio[i["loser"]], i["beta"]
    loss = dpo_loss(won, lost, beta)
    return {
        "Z_cancels": bool(torch.isclose(loss, dpo_loss(won + 3.0, lost + 3.0, beta))),  # of both: π times a constant
        "loss_at_init": dpo_loss(tensor(0.0), tensor(0.0), beta),
        "loss_at_pi_star": loss,
    }


def margins(i: Inputs) -> Inputs:
    return {"loss": pairwise_loss(tensor(i["margin"]), torch.zeros(len(i["margin"]), dtype=torch.float64))}


def near_sft(i: Inputs) -> Inputs:
    log_ref, r, beta = tensor(i["pi_sft"]).log(), tensor(i["r"]), i["beta"]
    best = best_policy(log_ref, r, beta)
    implied = implied_reward(best, log_ref, beta)
    return {
        "pi_star": best.exp(),
        "value": regularised_value(best, log_ref, r, beta),
        "value_at_pi_sft": regularised_value(log_ref, log_ref, r, beta),
        "implied_reward_difference_1_0": implied[1] - implied[0],
    }


def weight_on_the_reward(i: Inputs) -> Inputs:
    log_ref, r, lam = tensor(i["pi_ref"]).log(), tensor(i["R"]), i["lambda"]
    best = best_policy(log_ref, r, 1 / lam)
    least = rlhf_loss(best, log_ref, r, lam)
    near = best + 0.1 * torch.randn(200, len(r), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return {
        "pi_star": best.exp(),
        "objective_at_pi_star": least,
        "minus_log_Z": -log_partition(log_ref, r, 1 / lam),
        "no_random_perturbation_is_lower": bool((rlhf_loss(near.log_softmax(-1), log_ref, r, lam) > least).all()),
    }


EXAMPLES: dict[str, Compute] = {
    "VOM-13.7.3-double-strength": strengths,
    "VOM-13.7.3-sigma2": eighty_eight,
    "VOM-13.7.4-shift": shifted,
    "VOM-13.7.5-objective": objective,
    "VOM-13.7.7-closed-form": closed_form,
    "VOM-13.7.7-dpo-loss": dpo,
    "S940-12.1-reward-model-loss": margins,
    "S940-12.1-kl-regularised-optimum": near_sft,
    "MF-20.3.3-rlhf-optimum": weight_on_the_reward,
}

SET_ASIDE: dict[str, str] = {}
