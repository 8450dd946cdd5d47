"""Worked examples of autoencoders, PCA and the size of raw spaces."""

from __future__ import annotations

import math

import torch

from descend.catalog.examples import Compute, Inputs
from descend.classic.pca import PCA
from descend.losses.reconstruction import half_squared_error
from descend.models.autoencoder import Autoencoder, AutoencoderConfig
from descend.theory.image_space import count_images


def dimensions(i: Inputs) -> Inputs:
    return {"dimensions": math.prod((i["height"], i["width"]))}


def deep_code(i: Inputs) -> Inputs:
    config = AutoencoderConfig(image=(1, *i["image"]), latent=i["latent"])
    return {"input_dim": config.widths[0], "compression_ratio": config.compression}


def linear_against_pca(i: Inputs) -> Inputs:
    """A linear autoencoder, trained to the end by L-BFGS, against PCA of the same rows."""
    random = torch.Generator().manual_seed(i["seed"])
    mix = torch.randn(i["d"], i["d"], dtype=torch.float64, generator=random)
    x = torch.randn(i["n"], i["d"], dtype=torch.float64, generator=random) @ mix
    torch.manual_seed(i["seed"])
    model = Autoencoder(AutoencoderConfig(image=(i["d"],), hidden=(), latent=i["latent"])).double()
    rule = torch.optim.LBFGS(model.parameters(), max_iter=400, tolerance_grad=1e-12, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        rule.zero_grad()
        value = half_squared_error(x, model(x)).sum()
        value.backward()
        return value

    rule.step(loss)
    pca = PCA.fit(x, i["latent"])
    ours, _ = torch.linalg.qr(model.state_dict()["decoder.0.weight"])
    cosines = torch.linalg.svdvals(ours.T @ pca.components)
    best = half_squared_error(x, pca.inverse(pca.transform(x))).sum()
    return {"ae_loss_over_pca_loss": half_squared_error(x, model(x)).sum() / best, "cos_principal_angles": cosines}


def image_space(i: Inputs) -> Inputs:
    found = count_images(i["levels"], i["channels"], i["H"], i["W"])
    return {
        "exponent": found.exponent,
        "log10": round(found.log10, 3),
        "decimal_digits": found.digits,
        "bits": found.bits,
    }


EXAMPLES: dict[str, Compute] = {
    "DLN-Manifold-dims": dimensions,
    "DLN-DeepAE-code": deep_code,
    "DLN-LinearAE-PCA": linear_against_pca,
    "DLD-10-image-space": image_space,
}

SET_ASIDE: dict[str, str] = {}
