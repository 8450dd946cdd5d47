"""Worked examples of the family regularizers: L2, L1, ridge, lasso, elastic net."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from descend.catalog.examples import Compute, Inputs, real
from descend.classic.elastic_net import elastic_net, kkt_residual
from descend.classic.lasso import largest_lambda, lasso, lasso_of_half_mean_square, lasso_of_mean_square
from descend.classic.ridge import ridge, ridge_by_svd, ridge_of_half_mean_square, ridge_of_mean_square, shrinkage
from descend.losses.penalties import half_l2, l2, square_sum
from descend.optim.proximal import decay, soft_threshold
from descend.optim.rules import SGD


def slope(loss: Tensor, of: Tensor) -> Tensor:
    return torch.autograd.grad(loss, of)[0]


# Penalties


def near_and_exact_zeros(i: Inputs) -> Inputs:
    """½ (w − a)² is least squares with X = I."""
    a, lam = real(i["unregularised_optimum"]), i["lambda"]
    x = torch.eye(len(a), dtype=a.dtype)
    return {"L2": ridge(x, a, lam), "L1": lasso(x, a, lam)}


def chapter_seven(i: Inputs) -> Inputs:
    w1, w2 = real(i["W1"]), real(i["W2"])
    penalty = l2([w1, w2], i["lambda"])
    return {
        "W1_sq": square_sum([w1]),
        "W2_sq": square_sum([w2]),
        "sum": square_sum([w1, w2]),
        "penalty": penalty,
        "loss_reg": i["loss"] + penalty,
        "squares_W1": [square_sum([w]) for w in w1.flatten()],
        "squares_W2": [square_sum([w]) for w in w2.flatten()],
    }


def two_scalings(i: Inputs) -> Inputs:
    w1, w2 = real(i["W1"]), real(i["W2"]).requires_grad_()
    whole, half = l2([w1, w2], i["lambda"]), half_l2([w1, w2], i["lambda"])
    return {
        "penalty_7.4": whole.detach(),
        "penalty_8.22": half.detach(),
        "decay_gradient_W2_7.7": slope(whole, w2)[0],
        "decay_gradient_W2_8.23": slope(half, w2)[0],
    }


def take_step(w: Tensor, g: Tensor, eta: float, lam: float) -> Tensor:
    """One step of the library's SGD, without momentum and with weight decay, from w with gradient g."""
    layer = nn.Linear(len(w), 1, bias=False).double()
    layer.weight.data, layer.weight.grad = w[None].clone(), g[None].clone()
    SGD(lr=eta, momentum=0.0, weight_decay=lam).build(layer).step()
    return layer.weight.data[0]


def two_forms_of_a_step(i: Inputs) -> Inputs:
    w, g, eta, lam = real(i["W"]), real(i["grad"]), i["eta"], i["lambda"]
    by_penalty = slope(half_l2([w.requires_grad_()], lam), w)
    w = w.detach()
    return {"penalty_form": take_step(w, g + by_penalty, eta, 0.0), "decay_form": decay(w, eta, lam) - eta * g}


def weight_decay(i: Inputs) -> Inputs:
    return {"theta_new": take_step(real(i["theta"]), real(i["grad_loss"]), i["eta"], i["lam"])}


# Linear learners


def penalty_and_budget(i: Inputs) -> Inputs:
    x, y = real(i["X"]), real(i["y"])
    return {"t": lasso(x, y, real(i["lam"])).abs().sum(-1), "lambda_max": largest_lambda(x, y)}


def ridge_scalings(i: Inputs) -> Inputs:
    x, y, lam = real(i["X"]), real(i["y"]), i["lam"]
    w = ridge(x, y, lam).requires_grad_()
    printed = (x @ w - y).square().mean() + half_l2([w], lam)
    return {
        "w_printed_formula": w.detach(),
        "gradient_of_printed_objective_there": slope(printed, w),
        "w_argmin_squared_loss": ridge_of_mean_square(x, y, lam),
        "w_argmin_half_squared_loss": ridge_of_half_mean_square(x, y, lam),
    }


def ridge_shrinkage(i: Inputs) -> Inputs:
    x, y, lam = real(i["X"]), real(i["y"]), i["lam"]
    sigma, factors = shrinkage(x, lam)
    return {"singular_values": sigma, "shrinkage": factors, "w_via_svd": ridge_by_svd(x, y, lam)}


def lasso_scalings(i: Inputs) -> Inputs:
    x, y, lam = real(i["X"]), real(i["y"]), i["lam"]
    w = lasso(x, y, lam).requires_grad_()
    g = slope((x @ w - y).square().mean(), w)
    return {
        "XTy": x.T @ y,
        "w_printed": w.detach(),
        "kkt_residual_for_printed_mean_objective": kkt_residual(w.detach(), g, lam),
        "w_for_mean_squared_loss": lasso_of_mean_square(x, y, lam),
        "w_for_half_mean_squared_loss": lasso_of_half_mean_square(x, y, lam),
    }


def thresholds(i: Inputs) -> Inputs:
    return {"S": soft_threshold(real(i["z"]), i["alpha"])}


def elastic(i: Inputs) -> Inputs:
    x, y, lam, alpha = real(i["X"]), real(i["y"]), i["lam"], i["alpha"]
    return {
        "w": elastic_net(x, y, lam, alpha),
        "alpha_1_is_lasso": elastic_net(x, y, lam, 1.0),
        "alpha_0_is_ridge": elastic_net(x, y, lam, 0.0),
    }


EXAMPLES: dict[str, Compute] = {
    "DLN-WeightDecay-L1-L2": near_and_exact_zeros,
    "MF-7.2.2-l2": chapter_seven,
    "MF-7.2-vs-8.4.1-lambda": two_scalings,
    "MF-8.4.1-sgd-equivalence": two_forms_of_a_step,
    "S940-2.4-weight-decay": weight_decay,
    "DLD-9.1-lambda-t-correspondence": penalty_and_budget,
    "DLD-9.2-ridge-closed-form": ridge_scalings,
    "DLD-9.2-ridge-shrinkage": ridge_shrinkage,
    "DLD-9.3-lasso-orthonormal": lasso_scalings,
    "DLD-9.3-soft-threshold": thresholds,
    "DLD-9.4-elastic-net": elastic,
}

SET_ASIDE: dict[str, str] = {
    "DLD-9.2-ridge-closed-form:lambda_in_formula_for_squared_loss": "a formula in words; its weights are compared",
    "DLD-9.2-ridge-closed-form:lambda_in_formula_for_half_squared_loss": "a formula in words; its weights are compared",
    "DLD-9.3-lasso-orthonormal:kkt_residual_for_half_sum_objective": "a rounding error; a test bounds ours",
    "DLD-9.3-lasso-orthonormal:threshold_for_mean_squared_loss": "a formula in words; its weights are compared",
    "DLD-9.4-elastic-net:kkt_residual": "a rounding error; a test bounds ours",
}
