"""A network of layer objects that differentiate themselves: three inputs, three outputs each, and no autograd.

    forward    x_l = f_l(x_{l-1}, θ_l)
    backward   ∂J/∂x_{l-1} = ∂J/∂x_l · ∂x_l/∂x_{l-1}          ∂J/∂θ_l = ∂J/∂x_l · ∂x_l/∂θ_l
    update     θ_l ← θ_l − η (∂J/∂θ_l)ᵀ                      (DLD's gradients are rows, hence the transpose)

Examples are rows. S940 says the cost is "O(L) passes": it is one forward and one backward sweep, linear in depth.

Systems: mlp-backpropagation
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from descend.ops.backward.layers import linear_backward
from descend.ops.backward.mlp import ACTIVATIONS


class Layer(Protocol):
    """What the sweep needs of a layer; `forward` keeps what the other methods use."""

    def forward(self, x: Tensor) -> Tensor: ...

    def backward_input(self, g: Tensor) -> Tensor: ...

    def backward_params(self, g: Tensor) -> tuple[Tensor, ...]: ...

    def update(self, gradients: tuple[Tensor, ...], rate: float) -> None: ...


class Linear:
    """y = x W + b: x (m, i), W (i, o)."""

    def __init__(self, w: Tensor, b: Tensor):
        self.w, self.b = w, b

    def forward(self, x: Tensor) -> Tensor:
        self.x = x
        return x @ self.w + self.b

    def backward_input(self, g: Tensor) -> Tensor:
        return g @ self.w.T

    def backward_params(self, g: Tensor) -> tuple[Tensor, ...]:
        return linear_backward(self.x, self.w, g)[1:]

    def update(self, gradients: tuple[Tensor, ...], rate: float) -> None:
        self.w, self.b = self.w - rate * gradients[0], self.b - rate * gradients[1]


class Elementwise:
    """y = g(x) for an activation of `descend.ops.backward.mlp`; it has no parameters."""

    def __init__(self, name: str):
        self.slope = ACTIVATIONS[name]

    def forward(self, x: Tensor) -> Tensor:
        self.x = x
        return self.slope.g(x)

    def backward_input(self, g: Tensor) -> Tensor:
        return g * self.slope.derivative(self.x)

    def backward_params(self, g: Tensor) -> tuple[Tensor, ...]:
        return ()

    def update(self, gradients: tuple[Tensor, ...], rate: float) -> None:
        """Nothing to move."""


def forward(layers: Sequence[Layer], x: Tensor) -> Tensor:
    for layer in layers:
        x = layer.forward(x)
    return x


def backward(layers: Sequence[Layer], g: Tensor) -> tuple[Tensor, list[tuple[Tensor, ...]]]:
    """∂J/∂x, and ∂J/∂θ of every layer, the first layer first."""
    gradients = []
    for layer in reversed(layers):
        gradients.append(layer.backward_params(g))
        g = layer.backward_input(g)
    return g, gradients[::-1]


def update(layers: Sequence[Layer], gradients: Sequence[tuple[Tensor, ...]], rate: float) -> None:
    for layer, found in zip(layers, gradients, strict=True):
        layer.update(found, rate)
