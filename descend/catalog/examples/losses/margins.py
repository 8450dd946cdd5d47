"""Worked examples of the family losses: margins, embeddings, the adaptive softmax, focal loss."""

from __future__ import annotations

import torch

from descend.catalog.examples import Compute, Inputs, real
from descend.losses.adaptive import AdaptiveSoftmax
from descend.losses.classification import focal
from descend.losses.margin import hinge, margin_ranking, multilabel_margin, soft_margin, target_rows
from descend.losses.metric_learning import cosine, cosine_embedding, distance, hinge_embedding, triplet_margin
from descend.losses.regression import half_squared_error
from descend.losses.risk import per_example


def hinge_cases(i: Inputs) -> Inputs:
    x = real(i["x"])
    return {"loss": hinge(x, torch.full_like(x, i["y"]), i["margin"])}


def soft_margins(i: Inputs) -> Inputs:
    x = real(i["y*x"]).requires_grad_()
    losses = soft_margin(x, torch.ones_like(x))
    return {"loss": losses.detach(), "gradient_wrt_yx": torch.autograd.grad(losses.sum(), x)[0]}


def multilabel(i: Inputs) -> Inputs:
    """Over all classes: every target ranked against every class, itself included."""
    x, targets = real(i["x"]), i["targets"]
    one, c = torch.ones((), dtype=torch.float64), len(i["x"])
    pairs = [margin_ranking(x[j], x[k], one, margin=1.0) for j in targets for k in range(c)]
    return {
        "i_over_non_targets": multilabel_margin(x[None], target_rows([targets], c))[0],
        "i_over_all_classes": torch.stack(pairs).sum() / c,
        "torch": multilabel_margin(x, torch.tensor(i["target_row_torch"])),
    }


def hinge_embeddings(i: Inputs) -> Inputs:
    x = real(i["distance"])
    like, unlike = (hinge_embedding(x, sign * torch.ones_like(x), i["margin"]) for sign in (1, -1))
    return {"y=+1": like, "y=-1": unlike, "torch": torch.cat([like, unlike])}


def ranking(i: Inputs) -> Inputs:
    y = real(i["y"])
    losses = margin_ranking(real(i["x1"]).expand(2), real(i["x2"]).expand(2), y, i["margin"])
    return {"loss": losses, "torch": losses}


def cosine_branches(i: Inputs) -> Inputs:
    x1, x2 = real(i["x1"]), real(i["x2"])
    like, unlike = (cosine_embedding(x1, x2, real(y), i["margin"]) for y in (1.0, -1.0))
    return {"cos": cosine(x1, x2), "y=+1": like, "y=-1": unlike, "torch": [like, unlike]}


def cosine_and_distance(i: Inputs) -> Inputs:
    x1, x2 = real(i["x1"]), real(i["x2"])
    u1, u2 = x1 / distance(x1, 0 * x1), x2 / distance(x2, 0 * x2)
    return {
        "1-cos": cosine_embedding(x1, x2, real(1.0)),
        "euclidean_of_unit_vectors": distance(u1, u2),
        "half_squared_euclidean": per_example(half_squared_error(u1[None], u2[None]))[0],
    }


def triplet(i: Inputs) -> Inputs:
    """torch adds 1e-6 inside its distances, less than the digits that are compared."""
    loss = triplet_margin(real(i["a"]), real(i["p"]), real(i["n"]), i["margin"])[0]
    return {"loss": loss, "torch": loss}


def adaptive(i: Inputs) -> Inputs:
    torch.manual_seed(i["seed"])
    model = AdaptiveSoftmax(i["in_features"], i["classes"], i["cutoffs"], i["div_value"]).double()
    x = torch.randn(5, i["in_features"], dtype=torch.float64)
    return {
        "row_sums": model.log_prob(x).exp().sum(-1).detach(),
        "params_adaptive": sum(p.numel() for p in model.parameters()),
        "params_full_softmax_no_bias": i["in_features"] * i["classes"],
        "tail_projection_shapes": [[list(p.shape) for p in tail.parameters()] for tail in model.tail],
    }


def focus(i: Inputs) -> Inputs:
    log_p = real(i["p_t"]).log()
    loss = focal(-log_p, i["gamma"])
    return {"weight": loss / -log_p, "log": log_p, "L_cls": loss}


EXAMPLES: dict[str, Compute] = {
    "DLN-Hinge-cases": hinge_cases,
    "DLN-SoftMargin-margin": soft_margins,
    "DLN-MultiLabelMargin": multilabel,
    "DLN-HingeEmbedding": hinge_embeddings,
    "DLN-MarginRanking": ranking,
    "DLN-CosineEmbedding-branches": cosine_branches,
    "DLN-Cosine-normalised-euclid": cosine_and_distance,
    "DLN-TripletMargin": triplet,
    "DLN-AdaptiveSoftmax-equal": adaptive,
    "MF-28.2.7-focal": focus,
}

SET_ASIDE: dict[str, str] = {
    "DLN-AdaptiveSoftmax-equal:loss": "of inputs and classes drawn at random that are not given with the seed",
}
