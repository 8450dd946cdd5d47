"""Backpropagation of a multilayer perceptron: the delta recursion, in both layouts.

    zˡ = Wˡ aˡ⁻¹ + bˡ,   aˡ = gˡ(zˡ),   δˡ = ∂C/∂zˡ
    δᴸ = ∂C/∂aᴸ ⊙ gᴸ′(zᴸ)                     δˡ = (Wˡ⁺¹)ᵀ δˡ⁺¹ ⊙ gˡ′(zˡ)
    ∂C/∂Wˡ = δˡ (aˡ⁻¹)ᵀ                       ∂C/∂bˡ = δˡ
    a batch of m examples as columns          ∂C/∂Wˡ = (1/m) Δˡ (Aˡ⁻¹)ᵀ,  ∂C/∂bˡ = (1/m) Δˡ 1

Columns (`backward_columns`): examples are columns, X (n₀, m), as DLN, MF and S940 write it. Rows (`backward_rows`):
examples are rows, X (m, n₀), and W keeps its shape (n_l, n_{l-1}); gradients are then rows, as in DLD. The columns of
Δ are the deltas of the single examples, and 1/m stands in the gradients alone.

Errata. MF (5.6) fails for softmax, whose g′ is a matrix: take `softmax_backward` of ∂C/∂a, or p − y. MF (5.17) has 1/m
inside Δ already, so with (5.20) the average is taken twice; (5.23) is right. The first line of VOM 5.4.3 has the wrong
sign: δ₂ = (ŷ − y) ŷ (1 − ŷ). DLN prints the Jacobian's element in numerator layout and needs the denominator layout.

Systems: mlp-backpropagation
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.func import jacrev

from descend.ops.backward.layers import softmax_backward

Function = Callable[[Tensor], Tensor]


class Slope(NamedTuple):
    """An elementwise activation g and its derivative g′, both of z."""

    g: Function
    derivative: Function


ACTIVATIONS: dict[str, Slope] = {
    "identity": Slope(lambda z: z, torch.ones_like),
    "relu": Slope(torch.relu, lambda z: (z > 0).to(z.dtype)),
    "sigmoid": Slope(torch.sigmoid, lambda z: z.sigmoid() * (1 - z.sigmoid())),
    "tanh": Slope(torch.tanh, lambda z: 1 - z.tanh().square()),
}


class Step(NamedTuple):
    """A layer of the forward pass: its input a, its z, and the name of its activation."""

    a: Tensor
    z: Tensor
    activation: str


class Gradients(NamedTuple):
    """Of all layers, the first layer first; `x` is that of the input."""

    deltas: list[Tensor]
    weights: list[Tensor]
    biases: list[Tensor]
    x: Tensor


def forward_columns(
    x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], names: Sequence[str]
) -> tuple[Tensor, list[Step]]:
    """aᴸ (n_L, m) of X (n₀, m), and what the backward pass needs."""
    steps, a = [], x
    for w, b, name in zip(weights, biases, names, strict=True):
        z = w @ a + b[:, None]
        steps.append(Step(a, z, name))
        a = ACTIVATIONS[name].g(z)
    return a, steps


def output_delta(step: Step, a_bar: Tensor) -> Tensor:
    """δᴸ = ∂C/∂aᴸ ⊙ g′(zᴸ), for an elementwise activation."""
    return a_bar * ACTIVATIONS[step.activation].derivative(step.z)


def softmax_output_delta(z: Tensor, a_bar: Tensor) -> Tensor:
    """δᴸ = (diag(p) − p pᵀ) ∂C/∂p for columns z (k, m): what (5.6) must become for softmax."""
    return softmax_backward(z.softmax(dim=0).T, a_bar.T).T


def backward_columns(steps: Sequence[Step], weights: Sequence[Tensor], delta: Tensor) -> Gradients:
    """All gradients of the mean loss, from the deltas (n_L, m) of the last layer, one column for each example."""
    m = delta.shape[1]
    deltas, of_weights, of_biases = [], [], []
    for i, (step, w) in reversed(list(enumerate(zip(steps, weights, strict=True)))):
        deltas.append(delta)
        of_weights.append(delta @ step.a.T / m)
        of_biases.append(delta.sum(dim=1) / m)
        a_bar = w.T @ delta
        delta = output_delta(steps[i - 1], a_bar) if i else a_bar
    return Gradients(deltas[::-1], of_weights[::-1], of_biases[::-1], a_bar / m)


def forward_rows(
    x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], names: Sequence[str]
) -> tuple[Tensor, list[Step]]:
    """aᴸ (m, n_L) of X (m, n₀): Z = A Wᵀ + b."""
    steps, a = [], x
    for w, b, name in zip(weights, biases, names, strict=True):
        z = a @ w.T + b
        steps.append(Step(a, z, name))
        a = ACTIVATIONS[name].g(z)
    return a, steps


def backward_rows(steps: Sequence[Step], weights: Sequence[Tensor], delta: Tensor) -> Gradients:
    """The same in rows: delta (m, n_L); ∂C/∂A = Δ W and ∂C/∂W = Δᵀ A / m."""
    m = delta.shape[0]
    deltas, of_weights, of_biases = [], [], []
    for i, (step, w) in reversed(list(enumerate(zip(steps, weights, strict=True)))):
        deltas.append(delta)
        of_weights.append(delta.T @ step.a / m)
        of_biases.append(delta.sum(dim=0) / m)
        a_bar = delta @ w
        delta = output_delta(steps[i - 1], a_bar) if i else a_bar
    return Gradients(deltas[::-1], of_weights[::-1], of_biases[::-1], a_bar / m)


class TwoLayer(NamedTuple):
    """Values and gradients of the two-layer ReLU network of S940 1.5, for one example."""

    a: Tensor
    h: Tensor
    y_hat: Tensor
    loss: Tensor
    delta_out: Tensor
    w2: Tensor
    delta: Tensor
    w1: Tensor


def two_layer_gradients(x: Tensor, y: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> TwoLayer:
    """a = W₁x + b₁, h = ReLU(a), ŷ = w₂ᵀh + b₂, L = ½(ŷ−y)²: δ_out = ŷ − y, δ = δ_out w₂ ⊙ 1[a>0], ∇W₁ = δ xᵀ.

    The gradient of b₂ is δ_out, that of b₁ is δ.
    """
    a = w1 @ x + b1
    h = a.relu()
    y_hat = w2 @ h + b2
    delta_out = y_hat - y
    delta = delta_out * w2 * (a > 0)
    return TwoLayer(a, h, y_hat, delta_out.square() / 2, delta_out, delta_out * h, delta, torch.outer(delta, x))


def numerator_jacobian(f: Function, x: Tensor) -> Tensor:
    """∂f_i/∂x_j at row i, column j: (d_f, d_x). Chain rule from the left: ∂g/∂x = (∂g/∂f)(∂f/∂x)."""
    return jacrev(f)(x)


def denominator_jacobian(f: Function, x: Tensor) -> Tensor:
    """∂f_j/∂x_i at row i, column j: (d_x, d_f). Chain rule in reversed order: ∂g/∂x = (∂f/∂x)(∂g/∂f)."""
    return numerator_jacobian(f, x).T
