"""Normalizing flows: a density pushed through invertible layers.

    x = f(z),  z ~ p_z        log p_x(x) = log p_z(f⁻¹(x)) + log|det J(x)|,  J_ij = ∂f⁻¹_i/∂x_j

    x = f^A(f^B(f^C(z)))      the inverse in reversed order;  log|det J| = Σ over the layers, each at its OWN input
    (DLN writes every layer's Jacobian at x, and repeats the index i in the chain rule)

A layer goes both ways, and each way tells the logarithm of its own |determinant|, one number for each example:

    forward(z) -> x, log|det ∂x/∂z|        for sampling
    inverse(x) -> z, log|det ∂z/∂x|        for the density; at the same pair (x, z) the two are each other's negative

Systems: normalizing-flow
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from descend.errors import Mistake
from descend.nn.flow.fused import Step, can_fuse, invert

Moved = tuple[Tensor, Tensor]
"""Points (b, D), and log|det| of the map at each (b)"""


class Bijection(nn.Module, ABC):
    """An invertible layer on points (b, D)."""

    @abstractmethod
    def forward(self, z: Tensor) -> Moved:
        """x = f(z), and log|det ∂x/∂z|."""

    @abstractmethod
    def inverse(self, x: Tensor) -> Moved:
        """z = f⁻¹(x), and log|det ∂z/∂x|."""

    def affine(self) -> Step | None:
        """The inverse as a step of the fast path, where it is affine in what moves; None for other layers."""
        return None


class Chain(Bijection):
    """Layers one after another; the first is the nearest to z."""

    def __init__(self, layers: Iterable[Bijection]):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, z: Tensor) -> Moved:
        total = z.new_zeros(len(z))
        for layer in self.layers:
            z, log_det = layer(z)
            total = total + log_det
        return z, total

    def inverse(self, x: Tensor) -> Moved:
        steps = [layer.affine() for layer in reversed(self.layers)]  # type: ignore[operator]
        if can_fuse(x, steps):
            return invert(x, [step for step in steps if step])
        total = x.new_zeros(len(x))
        for layer in reversed(self.layers):
            x, log_det = layer.inverse(x)  # type: ignore[operator]
            total = total + log_det
        return x, total

    def stages(self, z: Tensor) -> list[Tensor]:
        """z and what each layer makes of it, for looking at: len(layers) + 1 clouds."""
        found = [z]
        for layer in self.layers:
            found.append(layer(found[-1])[0])
        return found

    @torch.no_grad()
    def check(self, x: Tensor) -> None:
        """Refuse points that the inverse does not take to finite numbers; the layer that fails is named."""
        if not x.isfinite().all():
            row = int((~x.isfinite()).flatten(1).any(1).nonzero()[0])
            raise Mistake(f"point {row} has a NaN or an infinity, which no flow can invert; remove it from the data")
        for number in range(len(self.layers) - 1, -1, -1):
            layer = self.layers[number]
            x, log_det = layer.inverse(x)  # type: ignore[operator]
            bad = ~(x.isfinite().flatten(1).all(1) & log_det.isfinite())
            if bad.any():
                name = f"layer {number + 1} of {len(self.layers)} ({type(layer).__name__})"
                raise Mistake(
                    f"the flow's {name} makes NaN or infinity of point {int(bad.nonzero()[0])} of a batch: its scale "
                    f"has run away; lower --optim.lr or set --clip"
                )


class Inverse(Bijection):
    """A layer with its two directions exchanged."""

    def __init__(self, layer: Bijection):
        super().__init__()
        self.layer = layer

    def forward(self, z: Tensor) -> Moved:
        found: Moved = self.layer.inverse(z)
        return found

    def inverse(self, x: Tensor) -> Moved:
        found: Moved = self.layer(x)
        return found


class Reverse(Bijection):
    """The coordinates in reversed order; log|det| = 0."""

    def forward(self, z: Tensor) -> Moved:
        return z.flip(1), z.new_zeros(len(z))

    def inverse(self, x: Tensor) -> Moved:
        return self.forward(x)


def standard_normal(z: Tensor) -> Tensor:
    """log N(z; 0, I) = −½ ‖z‖² − (D/2) log 2π of each row.

    The squared norm is missing in DLN's batch loss, which prints −½ f⁻¹(x), a vector.
    """
    return -0.5 * (z.square() + 1.8378770664093453).sum(1)
