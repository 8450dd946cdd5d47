"""Worked examples of the family gan."""

from __future__ import annotations

import torch
from torch import Tensor

from descend.catalog.examples import Compute, Inputs, real
from descend.losses.adversarial import discriminator_loss, game_values, non_saturating, saturating

SURE = 1e4  # a logit whose loss is 0 when it is right: it leaves the other term alone


def logit(d: Tensor) -> Tensor:
    """The s of which D = σ(s)."""
    return (d / (1 - d)).log()


def equilibrium(i: Inputs) -> Inputs:
    real_logit, fake = logit(real(i["D(x)"])), logit(real(i["D(G(z))"]))
    loss = discriminator_loss(real_logit, fake)
    # DLN's generator maximises −log(1 − D); ours minimises log(1 − D).
    return {"L_D": loss, "V": -loss, "L_G_saturating": -saturating(fake)}


def two_terms(i: Inputs) -> Inputs:
    real_logit, fake = logit(real(i["D(x)"])), logit(real(i["D(G(z))"]))
    return {
        "L_real": discriminator_loss(real_logit, real(-SURE)),
        "L_fake": discriminator_loss(real(SURE), fake),
        "L_D": discriminator_loss(real_logit, fake),
    }


def slopes(d: list[float]) -> Inputs:
    """∂/∂s of both generator losses, one generated point at a time."""
    s = logit(real(d)).requires_grad_()
    losses = {"saturating": saturating, "non_saturating": non_saturating}
    return {name: torch.autograd.grad(torch.stack([loss(x) for x in s]).sum(), s)[0] for name, loss in losses.items()}


def dln_slopes(i: Inputs) -> Inputs:
    return slopes(i["D(G(z))"])


def s940_slopes(i: Inputs) -> Inputs:
    return slopes(i["D_of_fake"])


def sign(i: Inputs) -> Inputs:
    """One step on D itself: up the printed objective −log D, and down the loss −log D, which goes up log D."""
    d = real(i["D(G(z))"]).requires_grad_()
    gradient = torch.autograd.grad(non_saturating(logit(d)), d)[0]
    d = d.detach()
    return {
        "D_after_ascent_on_minus_log_D": d + i["step"] * gradient,
        "D_after_ascent_on_log_D": d - i["step"] * gradient,
    }


def order(i: Inputs) -> Inputs:
    outer, inner = game_values(real(i["V(D,G)"]))
    return {"min_G_max_D": outer, "max_D_min_G": inner}


EXAMPLES: dict[str, Compute] = {
    "DLN-GAN-equilibrium": equilibrium,
    "DLN-GAN-bce": two_terms,
    "DLN-GAN-saturation": dln_slopes,
    "S940-8.1-nonsaturating-gradient": s940_slopes,
    "DLN-GAN-nonsaturating-sign": sign,
    "DLN-GAN-minmax-order": order,
}

SET_ASIDE: dict[str, str] = {}
