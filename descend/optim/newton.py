"""Newton's method, and its diagonal form.

    Newton       Δθ = −α (H + μ I)⁻¹ ∇E             one step to the minimum of a quadratic (α = 1, μ = 0)
    diagonal     Δθ_j = −α g_j / (|H_jj| + μ)        exact on axis-aligned quadratics only

H turns ellipses into circles, but has n² entries: 10⁶ parameters make 10¹² entries, 4 TB. So both are for small
models, and not for `fit`: their closure returns the loss as a tensor with its graph (it need not call backward; if it
does, with retain_graph). The damping μ keeps steps short where the curvature is small or negative: where H + μ I is
not positive definite, Newton walks to a saddle or a maximum. The diagonal is exact, or estimated from products H z
with random signs.

Systems: newton-and-curvature
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from descend.optim.curvature import diagonal_estimate, hessian, hessian_product, slopes
from descend.optim.elementwise import Closure, evaluate
from descend.optim.flat import Flat, flatten


def hessian_entries(parameters: int) -> int:
    """n²."""
    return parameters**2


class Newton(Flat):
    """Δθ = −α (H + μ I)⁻¹ g."""

    def __init__(self, params: Iterable[Any], lr: float = 1.0, damping: float = 0.0):
        super().__init__(params, lr=lr, damping=damping)

    def step(self, closure: Closure | None = None) -> Any:
        loss = evaluate(closure)
        g = slopes(loss, self.params)
        with torch.no_grad():
            self.place(flatten(self.params) - self.setting("lr") * self.precondition(g))
        return loss.detach()

    def precondition(self, g: Tensor) -> Tensor:
        """(H + μ I)⁻¹ g."""
        h = hessian(g, self.params)
        h.diagonal().add_(self.setting("damping"))
        return torch.linalg.solve(h, g.detach())


class DiagonalNewton(Newton):
    """Δθ_j = −α g_j / (|H_jj| + μ), with the exact diagonal."""

    def precondition(self, g: Tensor) -> Tensor:
        return g.detach() / (self.diagonal(g).abs() + self.setting("damping"))

    def diagonal(self, g: Tensor) -> Tensor:
        return hessian(g, self.params).diagonal()


class EstimatedDiagonalNewton(DiagonalNewton):
    """The same with diag H estimated from `samples` products, for models whose Hessian does not fit."""

    def __init__(self, params: Iterable[Any], lr: float = 1.0, damping: float = 1e-3, samples: int = 10):
        super().__init__(params, lr, damping)
        self.samples = samples

    def diagonal(self, g: Tensor) -> Tensor:
        return diagonal_estimate(hessian_product(g, self.params), g.detach(), self.samples)
