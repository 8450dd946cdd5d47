"""What a GAN on points shows: real and generated points together."""

from __future__ import annotations

import torch
from torch import nn

from descend.contracts import Exhibit
from descend.data.streams.arrays import generator
from descend.data.toys.mixture import Mixture

SHOWN = 3  # key of the noise that is drawn


def show_points(g: nn.Module, mixture: Mixture, latent: int, n: int = 1000) -> Exhibit:
    """Real and generated points in one chart."""
    random = generator(SHOWN)
    real, _ = mixture.sample(n, random)
    z = torch.randn(n, latent, generator=random).to(next(g.parameters()).device)
    content = {"real": real.tolist(), "generated": g(z).cpu().tolist()}
    note = "Points between the modes are bad samples; a mode without points is missed."
    return Exhibit("points", "Real and generated points", content, note)
