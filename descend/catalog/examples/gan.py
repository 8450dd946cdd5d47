"""Worked examples of the family gan."""

from __future__ import annotations

import torch
from torch import Tensor

from descend.catalog.examples import Compute, Inputs, real
from descend.losses.adversarial import discriminator_loss, game_values, non_saturating, saturating
from descend.losses.cycle import cycle_loss
from descend.models.dcgan import DCGAN, DCGANConfig
from descend.ops.adversarial_game import (
    game_value,
    jensen_shannon,
    optimal_discriminator,
    oracle_accuracy,
    wasserstein_on_line,
)

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


def oracle(i: Inputs) -> Inputs:
    """Masses of N(0, 1) and N(m, 1) on a fine grid."""
    x = torch.linspace(-12, 16, 280_001, dtype=torch.float64)
    p, *others = (torch.softmax(-((x - m) ** 2) / 2, 0) for m in (0.0, *i["m"]))
    return {"accuracy": torch.stack([oracle_accuracy(p, q) for q in others])}


def identity(i: Inputs) -> Inputs:
    p, q = real(i["p_data"]), real(i["p_G"])
    d, js = optimal_discriminator(p, q), jensen_shannon(p, q)
    least = game_value(optimal_discriminator(p, p), p, p)
    identity = 2 * js - real(4).log()
    return {"D_star": d, "V": game_value(d, p, q), "JS": js, "two_JS_minus_log4": identity, "minimum": least}


def point_masses(i: Inputs) -> Inputs:
    """All mass at 0 against all mass at θ: two places, or one where θ = 0."""
    js, w1 = [], []
    for theta in i["theta"]:
        places = real([0.0, theta])
        p, q = real([1.0, 0.0]), real([0.0, 1.0]) if theta else real([1.0, 0.0])
        js.append(jensen_shannon(p, q))
        w1.append(wasserstein_on_line(places, p, q))
    one, other = torch.eye(2, dtype=torch.float64)
    return {"JS": torch.stack(js), "W1": torch.stack(w1), "log2": jensen_shannon(one, other)}


def cycles(i: Inputs) -> Inputs:
    x, y = (real(i[name])[:, None] for name in ("x", "y"))
    there = lambda x: 2 * x + 1
    exact, wrong = (lambda y: (y - 1) / 2), (lambda y: y / 2)
    return {
        "exact_inverse": cycle_loss(x, y, exact, there),
        "wrong_inverse": cycle_loss(x, y, wrong, there),
    }


def pairing(i: Inputs) -> Inputs:
    """Whether the domain that a generator makes is the one that its discriminator judges: what the task calls y of both
    players is domain Y, so it pairs G_Y with D_Y."""
    makes = {name: i[name].split(" -> ")[1] for name in ("G_X", "G_Y")}
    judges = {name: i[name].split()[1] for name in ("D_X", "D_Y")}
    fit = lambda g, d: makes[g] == judges[d]
    return {
        "printed_pairs_fit": [fit("G_X", "D_Y"), fit("G_Y", "D_X")],
        "right_pairs_fit": [fit("G_Y", "D_Y"), fit("G_X", "D_X")],
    }


def dcgan_shapes(i: Inputs) -> Inputs:
    """The maps that pass through the generator, by hooks, and its weights without biases and norms."""
    config = DCGANConfig(latent=i["latent"], channels=i["channels"][-1], width=i["channels"][-2], kernel=i["kernel"])
    with torch.device("meta"):
        model = DCGAN(config)
    shapes: list[list[int]] = []
    for layer in (model.norm, *model.ups, model.last):
        layer.register_forward_hook(lambda _, __, out: shapes.append(list(out.shape[1:])))
    model(torch.zeros(2, config.latent, device="meta"))
    return {"shapes": shapes, "generator_weights": sum(p.numel() for p in model.parameters() if p.dim() > 1)}


EXAMPLES: dict[str, Compute] = {
    "DLN-GAN-equilibrium": equilibrium,
    "DLN-GAN-bce": two_terms,
    "DLN-GAN-saturation": dln_slopes,
    "S940-8.1-nonsaturating-gradient": s940_slopes,
    "DLN-GAN-nonsaturating-sign": sign,
    "DLN-GAN-minmax-order": order,
    "DLN-GAN-oracle": oracle,
    "S940-8.1-optimal-discriminator": identity,
    "S940-8.2-js-saturation": point_masses,
    "DLN-CycleGAN-cycle-loss": cycles,
    "DLN-CycleGAN-pairing": pairing,
    "DLN-DCGAN-shapes": dcgan_shapes,
}

SET_ASIDE: dict[str, str] = {}
