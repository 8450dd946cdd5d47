"""Worked examples of the family losses."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from descend.catalog.examples import Compute, Inputs, real
from descend.losses.classification import (
    binary_cross_entropy,
    binary_cross_entropy_of_probabilities,
    class_weighted_mean,
    cross_entropy,
    nll,
    soft_cross_entropy,
)


def logit(p: Tensor) -> Tensor:
    """The z of which σ(z) = p."""
    return (p / (1 - p)).log()


def surprise(probabilities: list[float]) -> Tensor:
    """−log p of each, as the loss of a class that has this probability among two."""
    p = real(probabilities)
    return nll(torch.stack([p, 1 - p], -1).log(), torch.zeros(len(p), dtype=torch.long))


def slope(loss: Tensor, *of: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(loss, of))


# Two classes


def bce_logits(i: Inputs) -> Inputs:
    z, y = real(i["logits"]), real(i["targets"])
    losses = binary_cross_entropy(z, y)
    extreme = binary_cross_entropy(real(i["extreme"]["logit"]), real(i["extreme"]["target"]))
    return {
        "per_sample": binary_cross_entropy_of_probabilities(z.sigmoid(), y),
        "torch_logits": losses,
        "extreme_with_logits": extreme,
    }


def bce_gradients(i: Inputs) -> Inputs:
    by_p, by_z = [], []
    for y in i["y"]:
        z = real(i["z"]).requires_grad_()
        p = z.sigmoid().detach().requires_grad_()
        by_p += slope(binary_cross_entropy_of_probabilities(p, real(y)), p)
        by_z += slope(binary_cross_entropy(z, real(y)), z)
    return {"yhat": p.detach(), "dL_dyhat_y0_y1": by_p, "dL_dz_y0_y1": by_z}


def dld_bce(i: Inputs) -> Inputs:
    losses = binary_cross_entropy_of_probabilities(real(i["m"]), real(i["y"]))
    return {"per_sample": losses, "mean": losses.mean()}


def vom_bce(i: Inputs) -> Inputs:
    losses = binary_cross_entropy(logit(real(i["yhat"])), real(i["y"]))
    return {"log_terms": -losses, "sum": losses.sum(), "loss": losses.mean()}


# Many classes


def weighted_nll(i: Inputs) -> Inputs:
    y, w = torch.tensor(i["targets"]), real(i["class_weights"])
    losses = nll(real(i["logits"]).log_softmax(-1), y)
    return {"none": w[y] * losses, "mean": class_weighted_mean(losses, y, w), "sum": (w[y] * losses).sum()}


def integer_target(i: Inputs) -> Inputs:
    z = real(i["p"]).log()
    return {
        "loss": cross_entropy(z[None], torch.tensor([i["target_0based"]]))[0],
        "onehot_form": soft_cross_entropy(z, real(i["onehot"])),
        "sum_p": z.softmax(-1).sum(),
    }


def logit_gradient(i: Inputs) -> Inputs:
    z, y = real(i["z"]).requires_grad_(), real(i["y"])
    loss, p = soft_cross_entropy(z, y), z.detach().softmax(-1)
    return {"p": p, "loss": loss.detach(), "grad": p - y, "grad_autograd": slope(loss, z)[0]}


def middle_expression(i: Inputs) -> Inputs:
    z, y = real(i["z"]).requires_grad_(), real(i["y"])
    gradient = slope(soft_cross_entropy(z, y), z)[0]
    p = z.detach().softmax(-1)
    return {"middle_expression_value": -y + p * 1 + (p - y), "p_minus_y": gradient}


def decomposition(i: Inputs) -> Inputs:
    z, p = real(i["logits"]).requires_grad_(), real(i["p"])
    ce = soft_cross_entropy(z, p)
    h = soft_cross_entropy(p.log(), p)  # the cross-entropy of p with itself
    return {
        "phat": z.detach().softmax(-1),
        "CE": ce.detach(),
        "H": h,
        "KL": (ce - h).detach(),
        "one_hot_CE_class0": cross_entropy(z.detach()[None], torch.tensor([0]))[0],
        "gradient_wrt_logits": slope(ce, z)[0],
    }


def loss_dog(i: Inputs) -> Inputs:
    return {"loss": nll(real(i["q"]).log(), torch.tensor(1))}


def loss_table(i: Inputs) -> Inputs:
    return {"loss": surprise(i["q"])}


def loss_drops(i: Inputs) -> Inputs:
    return {"drop": [surprise(pair)[0] - surprise(pair)[1] for pair in i["pairs"]]}


def training_story(i: Inputs) -> Inputs:
    return {"loss": surprise(i["P_dog"])}


def vom_gradient(i: Inputs) -> Inputs:
    q, p = real(i["q"]).requires_grad_(), real(i["p"])
    z = q.detach().log().requires_grad_()
    return {
        "gradient": slope(soft_cross_entropy(z, p), z)[0],
        "gradient_in_probabilities": slope(nll(q.log(), p.argmax()), q)[0],
    }


def very_wrong(i: Inputs) -> Inputs:
    """Two classes, of which the right one has probability q."""
    z = torch.stack([logit(real(i["q_y"])), real(0.0)]).requires_grad_()
    q = z.softmax(-1)[0].detach().requires_grad_()
    y = torch.tensor(0)
    by_q = slope(nll(torch.stack([q, 1 - q]).log(), y), q)[0], slope(1 - q, q)[0]
    by_z = [slope(f(z.softmax(-1)), z)[0][0] for f in (lambda p: 1 - p[0], lambda p: (1 - p[0]) ** 2)]
    of_loss = slope(cross_entropy(z[None], y[None])[0], z)[0][0]
    return {
        "neglog_gradient_larger": bool(of_loss.abs() > by_z[0].abs()),
        "d_neglog_dq": by_q[0],
        "d_oneminus_dq": by_q[1],
        "d_neglog_dz": of_loss,
        "d_oneminus_dz": by_z[0],
        "d_squared_dz": by_z[1],
    }


def paris(i: Inputs) -> Inputs:
    sure, unsure = surprise([i["probs"]["Paris"], 0.01])
    total = math.fsum(i["probs"].values())
    return {"loss_072": sure, "loss_001": unsure, "ratio": unsure / sure, "prob_sum": total}


def log_sum_exp_form(i: Inputs) -> Inputs:
    z, y = real(i["z"]).requires_grad_(), torch.tensor(i["y_0based"])
    loss = cross_entropy(z[None], y[None])[0]
    big = real(i["big_z"])
    # −log p_y = −z_y + log Σ exp z, so the loss of any class gives back log Σ exp.
    lse = cross_entropy(big[None], torch.tensor([0]))[0] + big[0]
    return {
        "form_equals_nll": bool(torch.isclose(loss, nll(z.log_softmax(-1), y))),
        "loss": loss.detach(),
        "grad": slope(loss, z)[0],
        "stable_softmax_big": (big - lse).exp(),
        "stable_lse_big": lse,
    }


def classifications(i: Inputs) -> Inputs:
    logits = torch.empty(i["T"], 1).expand(i["T"], i["V"])
    return {"problems": logits.shape[0], "classes": logits.shape[1], "logits": logits.numel()}


EXAMPLES: dict[str, Compute] = {
    "DLN-BCE-logits": bce_logits,
    "MF-4.3-bce-gradients": bce_gradients,
    "DLD-1.4-bce": dld_bce,
    "VOM-5.3.2-bce": vom_bce,
    "DLN-NLL-CE-weighted": weighted_nll,
    "DLN-Training-ce-index": integer_target,
    "MF-4.4.3-logit-gradient": logit_gradient,
    "MF-4.4.3-eq4.17": middle_expression,
    "DLD-1.5-ce-decomposition": decomposition,
    "VOM-3.10-loss-dog": loss_dog,
    "VOM-3.10-loss-table": loss_table,
    "VOM-3.10-loss-drops": loss_drops,
    "VOM-3.10-training-story": training_story,
    "VOM-3.10-gradient": vom_gradient,
    "VOM-13.9.1.4-gradients": very_wrong,
    "VOM-13.9.1.5-paris": paris,
    "VOM-13.9.1.7-logit-gradient": log_sum_exp_form,
    "VOM-13.9.1.9-classifications": classifications,
}

SET_ASIDE: dict[str, str] = {
    "DLN-BCE-logits:extreme_BCELoss_of_sigmoid": "the 100 at which torch clamps; ours takes logits and is exact",
}
