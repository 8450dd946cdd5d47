"""Inference with an energy: the answer to x is the y with the lowest E(x, y), and there may be several.

    ŷ = argmin_y E(x, y)                       by listing every y, or by descent where y is continuous
    y ← y − η ∂E(x, y)/∂y,  x fixed            from anywhere, until the energy is low
    E(y_{k+1}) ≤ E(y_k)                        for η ≤ 2/L, L the largest curvature on the way

An implicit function: y = f(x) has one answer, an energy may have two minima for one x (a circle).

Systems: energy-function-inference
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.ops.energy.gibbs import Energy


def infer_by_listing(energies: Tensor, tolerance: float = 0.0) -> Tensor:
    """Which y (.., n) have the lowest of the energies (.., n), up to a tolerance: True for each minimiser."""
    return energies <= energies.amin(-1, keepdim=True) + tolerance


def slope(energy: Energy, y: Tensor) -> Tensor:
    """∂E/∂y of each point, without a graph."""
    with torch.enable_grad():
        y = y.detach().requires_grad_()
        return torch.autograd.grad(energy(y).sum(), y)[0]


def descend_energy(energy: Energy, y: Tensor, eta: float, steps: int) -> Tensor:
    """The path (steps + 1, n, d) of points y (n, d) down the energy; x is inside `energy`."""
    path = [y.detach()]
    for _ in range(steps):
        path.append(path[-1] - eta * slope(energy, path[-1]))
    return torch.stack(path)


def find_minima(energy: Energy, starts: Tensor, eta: float, steps: int, apart: float) -> Tensor:
    """The different end points (k, d) of descents from many starts: those farther than `apart` from each other."""
    found: list[Tensor] = []
    for end in descend_energy(energy, starts, eta, steps)[-1]:
        if all((end - known).norm() > apart for known in found):
            found.append(end)
    return torch.stack(found)
