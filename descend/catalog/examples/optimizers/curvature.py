"""Worked examples of Newton's method, curvature and conjugate gradients."""

from __future__ import annotations

from itertools import islice

import torch

from descend.catalog.examples import Compute, Inputs, real
from descend.optim.conjugate import cg_steps
from descend.optim.curvature import Along
from descend.optim.newton import Newton, hessian_entries
from descend.optim.trajectory import quadratic, trajectory


def size(i: Inputs) -> Inputs:
    entries = hessian_entries(i["parameters"])
    return {"entries": entries, "bytes_float32": entries * torch.float32.itemsize}


def one_step(i: Inputs) -> Inputs:
    h, b = real(i["H"]), real(i["b"])
    theta = trajectory(Newton, quadratic(h, b), real(i["theta0"]), 1).theta[-1]
    return {"theta1": theta, "gradient_norm": (h @ theta - b).norm()}


def ratio(i: Inputs) -> Inputs:
    found = [Along(real(g), real(c)) for g, c in i["gradient,curvature"]]
    return {"ratio_g_over_c": [one.step for one in found], "reduction": [one.reduction for one in found]}


def n_steps(i: Inputs) -> Inputs:
    """A random positive definite matrix of our own: the example's numbers are not recorded."""
    n, random = i["N"], torch.Generator().manual_seed(0)
    m = torch.randn(n, n, generator=random, dtype=torch.float64)
    a, b = m @ m.T + torch.eye(n, dtype=torch.float64), torch.randn(n, generator=random, dtype=torch.float64)
    steps = list(islice(cg_steps(lambda v: a @ v, b), n))
    p = torch.stack([step.direction for step in steps])
    products = p @ a @ p.T
    return {
        "final_residual_below_1e-9": bool(steps[-1].residual.norm() < 1e-9),
        "directions_conjugate_below_1e-9": bool((products - products.diag().diag()).abs().max() < 1e-9),
    }


EXAMPLES: dict[str, Compute] = {
    "DLN-Newton-hessian-size": size,
    "DLN-Newton-one-step": one_step,
    "DLN-Curvature-ratio": ratio,
    "DLN-CG-N-steps": n_steps,
}
SET_ASIDE: dict[str, str] = {
    "DLN-Newton-one-step:gradient_norm": "a rounding error near 1e-15, in theory 0",
    "DLN-CG-N-steps:residual_norms_first_5": "the matrix is not recorded (a random stream at an unknown position)",
}
