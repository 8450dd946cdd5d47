"""Multilayer perceptron: affine maps with a nonlinearity between them.

    a⁰ = x        zˡ = Wˡ aˡ⁻¹ + bˡ        aˡ = gˡ(zˡ)        l = 1..L        y = aᴸ
    parameters: Σ_l n_l (n_{l-1} + 1)

The hidden layers have any activation, the same or one for each; the last one, the head, is the identity for logits and
regression, sigmoid for one probability, softmax for several. VOM applies an activation at the output too, DLN's MyNet
does not: both are heads. MF stacks examples as columns, Z = W A + b 1ᵀ; here they are rows, Z = A Wᵀ + b.

A unit may see only a part of the layer below, its connection set UP(i): `Partial` takes the place of a dense layer. Its
missing weights are zeros that never move, so a network saved with it computes the same when read back as dense.

Systems: mlp
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn

from descend.ranges import Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained

Activation = Literal["identity", "relu", "sigmoid", "softmax", "tanh"]

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "identity": lambda z: z,
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "softmax": lambda z: z.softmax(dim=-1),
    "tanh": torch.tanh,
}


@dataclass(frozen=True)
class MLPConfig:
    """Widths n_0 = inputs, the hidden ones, n_L = outputs; a recipe takes inputs and outputs from its data."""

    inputs: Width = 784
    hidden: tuple[Width, ...] = (300,)
    outputs: Width = 10
    activations: tuple[Activation, ...] = ("relu",)
    """Of the hidden layers: one name for all, or one for each."""
    head: Activation = "identity"
    """Activation of the last layer."""

    def __post_init__(self) -> None:
        for name in ("hidden", "activations"):  # a list when read from config.json
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if len(self.activations) not in (1, len(self.hidden)):
            raise ValueError(
                f"{len(self.activations)} activations for {len(self.hidden)} hidden layers; give 1, or one each"
            )
        for name in (*self.activations, self.head):
            if name not in ACTIVATIONS:
                raise ValueError(f"activation {name!r} is unknown; known: {', '.join(ACTIVATIONS)}")

    @property
    def widths(self) -> tuple[int, ...]:
        """n_0 .. n_L"""
        return self.inputs, *self.hidden, self.outputs

    @property
    def parameters(self) -> int:
        """Σ_l n_l (n_{l-1} + 1), without building the network."""
        return sum(out * (n + 1) for n, out in pairwise(self.widths))

    @property
    def functions(self) -> list[Activation]:
        """The name of gˡ for every layer."""
        each = self.activations * len(self.hidden) if len(self.activations) == 1 else self.activations
        return [*each, self.head]


class MLP(Pretrained):
    """x (b, inputs), or anything that flattens to it -> y (b, outputs)"""

    Config = MLPConfig

    def __init__(self, config: MLPConfig):
        super().__init__()
        self.config = config
        self.layers = nn.ModuleList(nn.Linear(n, out) for n, out in pairwise(config.widths))

    def forward(self, x: Tensor) -> Tensor:
        a = x.flatten(1)
        for layer, g in zip(self.layers, self.config.functions, strict=True):
            a = ACTIVATIONS[g](layer(a))
        return a

    def trace(self, x: Tensor) -> list[tuple[Tensor, Tensor]]:
        """(zˡ, aˡ) of every layer, for looking inside; the last a is what `forward` returns."""
        a, steps = x.flatten(1), []
        for layer, g in zip(self.layers, self.config.functions, strict=True):
            z = layer(a)
            a = ACTIVATIONS[g](z)
            steps.append((z, a))
        return steps


class Partial(nn.Linear):
    """z_i = Σ_{j ∈ UP(i)} W_ij a_j + b_i"""

    mask: Tensor

    def __init__(self, inputs: int, up: Sequence[Sequence[int]]):
        super().__init__(inputs, len(up))
        mask = torch.zeros(len(up), inputs)
        for i, sources in enumerate(up):
            mask[i, list(sources)] = 1
        self.register_buffer("mask", mask, persistent=False)
        with torch.no_grad():
            self.weight *= mask

    def forward(self, a: Tensor) -> Tensor:
        return nn.functional.linear(a, self.weight * self.mask, self.bias)


SIZES = {"mynet": MLPConfig(inputs=600, hidden=(60, 40), outputs=10)}
PARAMETERS = {"mynet": 38_910}
TINY = MLPConfig(inputs=5, hidden=(7, 6), outputs=3, activations=("relu", "tanh"))


def TINY_INPUT() -> Tensor:
    """Two examples."""
    return torch.randn(2, TINY.inputs, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("MLP")
