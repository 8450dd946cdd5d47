"""Units that do not learn: dead ones, whose output is 0 for every example, and saturated ones, stuck at an end.

    non-saturating      lim |f'(x)| ≠ 0 for |x| → ∞          saturating: the limit is 0
    dead                a ReLU unit with a_i = 0 for every example: its gradient is exactly 0
    saturated           a unit whose outputs all lie within a margin of an end of its range (0 and 1, −1 and 1)

A saturating function is not yet a saturated unit: the first is a property of f, the second of f, weights and data. The
limit is taken on each side alone. By the two-sided definition that DLN prints, ReLU would be neither: 0 left, 1 right.

Activations are (.., units); for a convolution say `dim=1`, since a channel is one unit that sees many places.

Systems: saturation-test, dying-relu
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

FAR = 1e8
FLAT = 1e-4


def by_unit(activations: Tensor, dim: int = -1) -> Tensor:
    """(.., units, ..) -> (everything else, units)"""
    return activations.movedim(dim, -1).flatten(0, -2)


def dead_units(activations: Tensor, dim: int = -1) -> Tensor:
    """Which units are never above 0; of pre-activations: which are on the left side for every example."""
    return (by_unit(activations, dim) <= 0).all(dim=0)


def dead(activations: Tensor, dim: int = -1) -> float:
    """Share of units that are never above 0."""
    return dead_units(activations, dim).double().mean().item()


def at_an_end(activations: Tensor, low: float = 0.0, high: float = 1.0, margin: float = 0.01) -> Tensor:
    """Which outputs lie within the margin, a share of the range, of an end: (0, 1) for sigmoid, (−1, 1) for tanh."""
    width = margin * (high - low)
    return (activations <= low + width) | (activations >= high - width)


def saturated_units(activations: Tensor, low: float = 0.0, high: float = 1.0, dim: int = -1) -> Tensor:
    """Which units are at an end for every example."""
    return at_an_end(by_unit(activations, dim), low, high).all(dim=0)


def saturated_share(activations: Tensor, low: float = 0.0, high: float = 1.0, dim: int = -1) -> float:
    """Share of units that are at an end for every example."""
    return saturated_units(activations, low, high, dim).double().mean().item()


def saturated_outputs(activations: Tensor, low: float = 0.0, high: float = 1.0) -> float:
    """Share of all outputs, of any unit for any example, that are at an end."""
    return at_an_end(activations, low, high).double().mean().item()


def outputs(net: nn.Module, kind: type[nn.Module], x: Tensor) -> dict[str, Tensor]:
    """What every module of a kind (nn.ReLU, nn.Tanh, ..) puts out for x, by name; without gradients."""
    seen: dict[str, Tensor] = {}

    def keep(name: str) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], None]:
        return lambda module, given, out: seen.update({name: out})

    hooks = [m.register_forward_hook(keep(name)) for name, m in net.named_modules() if isinstance(m, kind)]
    try:
        with torch.no_grad():
            net(x)
    finally:
        for hook in hooks:
            hook.remove()
    return seen


def slope(f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """f'(x) by automatic differentiation, for an elementwise f."""
    x = x.detach().requires_grad_()
    (found,) = torch.autograd.grad(f(x).sum(), x)
    return found


def far_slopes(f: Callable[[Tensor], Tensor]) -> tuple[float, float]:
    """The largest |f'| met far to the left and far to the right (1e8 .. 2e8)."""
    far = torch.linspace(FAR, 2 * FAR, 101, dtype=torch.float64)
    return slope(f, -far).abs().max().item(), slope(f, far).abs().max().item()


def saturates(f: Callable[[Tensor], Tensor]) -> tuple[bool, bool]:
    """Whether f saturates on the left, and on the right; float64 must not overflow in f."""
    left, right = far_slopes(f)
    return left < FLAT, right < FLAT
