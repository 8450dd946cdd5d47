"""A multilayer perceptron of chosen parts: any activation, start, norm and dropout of the library, by name.

    x -> [ affine -> norm -> g -> dropout ] × hidden -> affine -> y

Where `models/mlp.py` is the book's network, this one is for trying its parts against one another: it is what the
playground trains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn

from descend.nn import init
from descend.nn.activations import activation
from descend.nn.norms import BatchNorm, LayerNormOutside, RMSNormOutside
from descend.ranges import Fraction, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained

STARTS: dict[str, Callable[[Tensor], Tensor]] = {
    "he-normal": partial(init.normal_, rule=init.he),
    "he-uniform": partial(init.uniform_, rule=init.he),
    "he-backward": partial(init.normal_, rule=init.he_backward),
    "xavier-normal": partial(init.normal_, rule=init.xavier),
    "xavier-uniform": partial(init.uniform_, rule=init.xavier),
    "lecun-normal": partial(init.normal_, rule=init.lecun),
    "backward": partial(init.normal_, rule=init.backward),
    "orthogonal": init.orthogonal_,
    "small": lambda w: nn.init.normal_(w, std=0.01),
    "large": lambda w: nn.init.normal_(w, std=3.0),
    "zeros": nn.init.zeros_,
}
NORMS: dict[str, Callable[[int], nn.Module]] = {
    "none": lambda _: nn.Identity(),
    "batch": BatchNorm,
    "layer": nn.LayerNorm,
    "layer-outside": LayerNormOutside,
    "rms": nn.RMSNorm,
    "rms-outside": RMSNormOutside,
}
Start = Literal[
    "he-normal", "he-uniform", "he-backward", "xavier-normal", "xavier-uniform", "lecun-normal", "backward",
    "orthogonal", "small", "large", "zeros",
]  # fmt: skip
Norm = Literal["none", "batch", "layer", "layer-outside", "rms", "rms-outside"]


@dataclass(frozen=True)
class LayeredConfig:
    """Widths, and the parts by their names; a recipe takes inputs and outputs from its data."""

    inputs: Width = 784
    hidden: tuple[Width, ...] = (8, 8)
    outputs: Width = 10
    activation: str = "tanh"
    """Of the hidden layers, by a name of descend.nn.activations."""
    start: Start = "xavier-normal"
    """How the weights begin; biases begin at 0."""
    norm: Norm = "none"
    """Between the affine map and the activation."""
    dropout: Fraction = 0.0
    """Share of a hidden layer's units that is left out in a training step."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", tuple(self.hidden))  # a list when read from config.json
        activation(self.activation)  # names the nearest where there is none


class Layered(Pretrained):
    """x (b, inputs), or anything that flattens to it -> y (b, outputs)"""

    Config = LayeredConfig

    def __init__(self, config: LayeredConfig):
        super().__init__()
        c = self.config = config
        widths = (c.inputs, *c.hidden)
        self.layers = nn.ModuleList(nn.Linear(n, out) for n, out in pairwise(widths))
        self.norms = nn.ModuleList(NORMS[c.norm](n) for n in c.hidden)
        self.activations = nn.ModuleList(activation(c.activation) for _ in c.hidden)
        self.drop = nn.Dropout(c.dropout)
        self.head = nn.Linear(widths[-1], c.outputs)
        for layer in (*self.layers, self.head):
            STARTS[c.start](layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.trace(x)[-1])

    def trace(self, x: Tensor) -> list[Tensor]:
        """a⁰ = x, and aˡ (b, n_l) of every hidden layer."""
        steps = [x.flatten(1)]
        for layer, norm, g in zip(self.layers, self.norms, self.activations, strict=True):
            steps.append(self.drop(g(norm(layer(steps[-1])))))
        return steps


SIZES = {"playground": LayeredConfig(inputs=2, hidden=(8, 8), outputs=2)}
PARAMETERS = {"playground": 114}
TINY = LayeredConfig(inputs=5, hidden=(7, 6), outputs=3, norm="layer")


def TINY_INPUT() -> Tensor:
    """Two examples."""
    return torch.randn(2, TINY.inputs, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("Layered")
