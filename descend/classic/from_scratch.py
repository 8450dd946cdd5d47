"""A training step written by hand, without autograd: forward, deltas, gradients, update; and the 2-3-1 net of MF 6.

    forward     a⁰ = x        zˡ = Wˡ aˡ⁻¹ + bˡ        aˡ = relu(zˡ)  l < L        ŷ = σ(zᴸ)
    loss        L = (1/m) Σ_i −[y_i log ŷ_i + (1 − y_i) log(1 − ŷ_i)]
    output      δᴸ = ŷ − y                                  (sigmoid and cross-entropy together)
    hidden      δˡ = (Wˡ⁺¹)ᵀ δˡ⁺¹ ⊙ 1[zˡ > 0]
    gradients   ∂L/∂Wˡ = (1/m) Σ_i δˡ_i (aˡ⁻¹_i)ᵀ           ∂L/∂bˡ = (1/m) Σ_i δˡ_i

Any optimizer then makes the update: it reads the gradients that were computed here. Examples are rows; MF has columns.
Errata of MF 6: its four losses (right: 1.1233, 0.1783, 0.9903, 0.1744), its batch gradient (right for W²: 0.0080,
0.0192, 0.0303), so its update and its second pass do not follow from its network. The forward passes and the gradients
of the first example do. The claim stands: one step brings the loss from 0.6166 to 0.5992.

Systems: from-scratch-training
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from descend.losses.classification import binary_cross_entropy
from descend.ops.dense import Layer

CHAPTER_6_X = ((0.5, 0.2), (0.9, 0.8), (0.1, 0.3), (0.8, 0.9))
CHAPTER_6_Y = (0.0, 1.0, 0.0, 1.0)
CHAPTER_6_LAYERS = (
    (((0.1, 0.2), (0.3, 0.4), (0.5, 0.6)), (0.01, 0.02, 0.03)),
    (((0.7, 0.8, 0.9),), (0.1,)),
)
CHAPTER_6_RATE = 0.1


def chapter_6() -> tuple[list[Layer], Tensor, Tensor]:
    """The layers, x (4, 2) and y (4) of MF 6."""
    layers = [(torch.tensor(w, dtype=torch.float64), torch.tensor(b, dtype=torch.float64)) for w, b in CHAPTER_6_LAYERS]
    return layers, torch.tensor(CHAPTER_6_X, dtype=torch.float64), torch.tensor(CHAPTER_6_Y, dtype=torch.float64)


@dataclass(frozen=True)
class Forward:
    """Everything that a forward pass computed: z and a of each layer, a[0] the input; one row per example."""

    z: list[Tensor]
    a: list[Tensor]

    @property
    def output(self) -> Tensor:
        """ŷ (m)"""
        return self.a[-1][:, 0]


def forward(layers: Sequence[Layer], x: Tensor) -> Forward:
    """Examples x (m, n_0) through all layers."""
    z, a = [], [x]
    for i, (w, b) in enumerate(layers):
        z.append(a[-1] @ w.T + b)
        a.append(z[-1].sigmoid() if i == len(layers) - 1 else z[-1].relu())
    return Forward(z, a)


def losses(done: Forward, y: Tensor) -> Tensor:
    """The cross-entropy of each example, from the logit."""
    return binary_cross_entropy(done.z[-1][:, 0], y)


def output_delta(output: Tensor, y: Tensor) -> Tensor:
    """δᴸ = ŷ − y of each example: (m, 1)."""
    return (output - y)[:, None]


def hidden_delta(delta: Tensor, w: Tensor, z: Tensor) -> Tensor:
    """δˡ = (Wˡ⁺¹)ᵀ δˡ⁺¹ ⊙ 1[zˡ > 0]; relu has slope 0 at 0."""
    return (delta @ w) * (z > 0)


def layer_gradient(delta: Tensor, a: Tensor) -> Layer:
    """(1/m) Σ_i δ_i a_iᵀ and (1/m) Σ_i δ_i"""
    return delta.T @ a / len(a), delta.mean(dim=0)


def backward(layers: Sequence[Layer], done: Forward, y: Tensor) -> list[Layer]:
    """The gradient of the mean loss in W and b of every layer, last to first but returned in the layers' order."""
    delta, gradients = output_delta(done.output, y), []
    for i in reversed(range(len(layers))):
        gradients.append(layer_gradient(delta, done.a[i]))
        if i:
            delta = hidden_delta(delta, layers[i][0], done.z[i - 1])
    return gradients[::-1]


def descend_once(layers: Sequence[Layer], gradients: Sequence[Layer], rate: float) -> list[Layer]:
    """θ ← θ − η ∂L/∂θ"""
    return [(w - rate * dw, b - rate * db) for (w, b), (dw, db) in zip(layers, gradients, strict=True)]


def train_step(layers: Sequence[Layer], x: Tensor, y: Tensor, optimizer: torch.optim.Optimizer) -> float:
    """One step of any optimizer over the layers' tensors, with gradients by hand; the mean loss before it."""
    with torch.no_grad():
        done = forward(layers, x)
        for (w, b), (dw, db) in zip(layers, backward(layers, done, y), strict=True):
            w.grad, b.grad = dw, db
        optimizer.step()
    return float(losses(done, y).mean())
