"""Worked examples of the family losses: regression, risk, maximum likelihood, divergence."""

from __future__ import annotations

import torch
from torch import Tensor

from descend.catalog.examples import Compute, Inputs, real
from descend.losses.classification import cross_entropy, nll
from descend.losses.divergence import kl, kl_of_probabilities
from descend.losses.regression import (
    absolute_error,
    gaussian_nll,
    half_squared_error,
    huber,
    smooth_l1,
    squared_distance,
    squared_error,
)
from descend.losses.risk import empirical_risk, summed_risk


def slope(losses: Tensor, at: Tensor) -> Tensor:
    return torch.autograd.grad(losses.sum(), at)[0]


def average(i: Inputs) -> Inputs:
    losses = real(i["per_sample_losses"])
    return {"terms": len(losses), "last_index": len(losses) - 1, "average": empirical_risk(losses)}


def mf_squared(i: Inputs) -> Inputs:
    yhat, y = real([i["yhat"]]).requires_grad_(), real([i["y"]])
    return {
        "loss": squared_distance(yhat, y)[0].detach(),
        "grad": slope(squared_distance(yhat, y), yhat)[0],
        "half_grad": slope(half_squared_error(yhat, y), yhat)[0],
        "torch_mse_loss_mean_reduction": squared_error(yhat, y).mean().detach(),
    }


def vom_squared(i: Inputs) -> Inputs:
    squares = squared_error(real(i["yhat"]), real(i["y"]))
    return {"squares": squares, "sum": summed_risk(squares), "mse": empirical_risk(squares)}


def quadratic_penalty(i: Inputs) -> Inputs:
    large, small = squared_error(real(i["errors"]), torch.zeros(2, dtype=torch.float64))
    return {"ratio": large / small}


def gaussian(i: Inputs) -> Inputs:
    """−log L from the MSE: a straight line through the values at MSE = 0 and MSE = 1."""
    y, f, sigma2 = real(i["y"]), real(i["f"]), i["sigma2"]
    mse, none = empirical_risk(squared_error(f, y)), torch.zeros_like(y)
    at_0, at_1 = (summed_risk(gaussian_nll(none, x, sigma2)) for x in (none, none + 1))
    return {
        "MSE": mse,
        "neg_log_likelihood": summed_risk(gaussian_nll(f, y, sigma2)),
        "from_formula": at_0 + (at_1 - at_0) * mse,
    }


def likelihood(i: Inputs) -> Inputs:
    z, y = real(i["logits"]), torch.tensor(i["labels"])
    return {"nll": nll(z.log_softmax(-1), y).mean(), "ce": empirical_risk(cross_entropy(z, y))}


def gradients(i: Inputs) -> Inputs:
    e = real(i["error"]).requires_grad_()
    zero = torch.zeros_like(e)
    return {"L2_gradient": slope(squared_error(e, zero), e), "L1_gradient": slope(absolute_error(e, zero), e)}


def smooth(i: Inputs) -> Inputs:
    d = real(i["abs_error"])
    return {f"beta_{beta}": smooth_l1(d, torch.zeros_like(d), beta) for beta in i["beta"]}


def mf_huber(i: Inputs) -> Inputs:
    r = real(i["residual_yhat_minus_y"]).requires_grad_()
    losses = huber(r, torch.zeros_like(r), i["delta"])
    return {"loss": losses.detach(), "derivative": slope(losses, r), "torch_huber_loss": losses.detach()}


def divergence(i: Inputs) -> Inputs:
    x, y = real(i["x_pred"]), real(i["y_target"])
    return {"formula_value": kl_of_probabilities(x, y), "torch_with_log_x": kl(x.log(), y)}


EXAMPLES: dict[str, Compute] = {
    "DLN-LossFunction-average": average,
    "MF-4.2-mse": mf_squared,
    "VOM-5.3.1-mse": vom_squared,
    "VOM-5.3.1-quadratic-penalty": quadratic_penalty,
    "DLN-MSE-MLE": gaussian,
    "DLD-1.6-mle-equals-ce": likelihood,
    "DLN-L1-L2-gradient": gradients,
    "DLN-SmoothL1": smooth,
    "MF-4.5-huber": mf_huber,
    "DLN-KLDivLoss-input": divergence,
}

SET_ASIDE: dict[str, str] = {
    "DLN-SmoothL1:value_at_d=beta": "a sentence, not a number; a test holds both branches against each other at β",
    "DLN-KLDivLoss-input:torch_with_probabilities_x": "what torch gives for the wrong input, which is refused here",
}
