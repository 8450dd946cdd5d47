"""Worked examples of the family probability-generative-theory."""

from __future__ import annotations

import torch

from descend.catalog.examples import Compute, Inputs, real
from descend.data.toys.mixture import Mixture


def marginal(i: Inputs) -> Inputs:
    mixture = Mixture(real(i["pi"]), real(i["mu"])[:, None], real(i["var"]).sqrt())
    line = torch.linspace(-20, 20, 4001, dtype=torch.float64)
    density = mixture.log_prob(line[:, None]).exp()
    return {
        "p_x": mixture.log_prob(real([[i["x"]]]))[0].exp(),
        "integral": torch.trapezoid(density, line),
    }


EXAMPLES: dict[str, Compute] = {"DLN-MoG-marginal": marginal}

SET_ASIDE: dict[str, str] = {}
