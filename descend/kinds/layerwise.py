"""Greedy layerwise training: each pair of layers learns as a shallow autoencoder on the codes of the one below.

    h_0 = x        for l = 1..L:   min ½ ‖h_{l−1} − V_l f(W_l h_{l−1} + b_l) − c_l‖²        h_l = f(W_l h_{l−1} + b_l)

The stack (W_l, b_l) is the start of a deep encoder or classifier, (V_l, c_l) in reverse that of a decoder; the whole
may then be trained end to end. It was the way around vanishing gradients in deep sigmoid networks; good initial scales,
ReLU and residual connections have made it obsolete.

Systems: greedy-layerwise-training
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from descend.engine.minimise import minimise
from descend.losses.reconstruction import half_squared_error
from descend.models.autoencoder import FUNCTIONS, Autoencoder
from descend.optim.rules import AdamW
from descend.seeds import generator

BATCH = 64


class Pair(nn.Module):
    """One layer up and one back: h -> V f(W h + b) + c"""

    def __init__(self, inputs: int, outputs: int, activation: Callable[[Tensor], Tensor]):
        super().__init__()
        self.up, self.back, self.activation = nn.Linear(inputs, outputs), nn.Linear(outputs, inputs), activation

    def encode(self, h: Tensor) -> Tensor:
        """f(W h + b)"""
        return self.activation(self.up(h))

    def forward(self, h: Tensor) -> Tensor:
        y: Tensor = self.back(self.encode(h))
        return y


def train_layerwise(
    x: Tensor,
    widths: Sequence[int],
    activations: Sequence[Callable[[Tensor], Tensor]],
    steps: int,
    lr: float,
    seed: int,
) -> list[Pair]:
    """Pairs of layers for rows x (n, widths[0]), one after another: each sees only the codes of the one below."""
    pairs: list[Pair] = []
    h = x.flatten(1)
    for number, ((n, m), f) in enumerate(zip(pairwise(widths), activations, strict=True)):
        pair, random, below = Pair(n, m, f), generator(seed, number), h

        def loss(pair: Pair = pair, random: torch.Generator = random, below: Tensor = below) -> Tensor:
            rows = below[torch.randint(len(below), (BATCH,), generator=random)]
            return half_squared_error(rows, pair(rows)).mean()

        minimise(pair, loss, steps, AdamW(lr, weight_decay=0.0))
        with torch.no_grad():
            h = pair.encode(h)
        pairs.append(pair)
    return pairs


@torch.no_grad()
def start_encoder(layers: Sequence[nn.Module] | nn.ModuleList, pairs: Sequence[Pair]) -> None:
    """Give the first layers of a deep network the weights of the stack."""
    for layer, pair in zip(layers, pairs, strict=False):
        layer.load_state_dict(pair.up.state_dict())


def start_autoencoder(model: Autoencoder, x: Tensor, steps: int, lr: float, seed: int) -> list[Pair]:
    """Train the stack for an autoencoder's widths and give it to both halves."""
    c = model.config
    functions = [FUNCTIONS[c.activation]] * len(c.hidden) + [FUNCTIONS[c.code]]
    pairs = train_layerwise(x, c.widths, functions, steps, lr, seed)
    start_encoder(model.encoder, pairs)
    with torch.no_grad():
        for layer, pair in zip(model.decoder, reversed(pairs), strict=True):
            layer.load_state_dict(pair.back.state_dict())
    return pairs
