"""Flow matching: learn a velocity field by regression on straight paths from noise to data. No ODE is solved.

    x_t = (1 − (1 − σ) t) x_0 + t x_1        u = dx_t/dt = x_1 − (1 − σ) x_0        x_0 ~ N(0, I), x_1 data, t ~ U(0, 1)
    L = E ‖v(x_t, t) − u‖²

The least v is E[u | x_t], whose flow takes the noise to the data (with σ > 0, to data blurred by σ). σ = 0 is the
straight line of the second paper's form, u = x_1 − x_0. DLN only announces the method and S940 only names it; these are
the equations of the cited papers.

Systems: flow-matching
"""

from __future__ import annotations

from torch import Tensor


def conditional_path(x0: Tensor, x1: Tensor, t: Tensor, sigma: float = 0.0) -> tuple[Tensor, Tensor]:
    """x_t and its velocity u, of x's shape, for noise x_0, data x_1 (b, ..) and times t (b)."""
    t = t.view(-1, *[1] * (x1.dim() - 1))
    return (1 - (1 - sigma) * t) * x0 + t * x1, x1 - (1 - sigma) * x0


def velocity_error(v: Tensor, u: Tensor) -> Tensor:
    """‖v − u‖² of each example (b), the sum over all its numbers."""
    return (v - u).square().flatten(1).sum(1)
