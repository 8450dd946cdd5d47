"""Neuron and dense layer, in the forms the books write; and what a stack of linear layers collapses to.

    neuron          z = Σ_i w_i x_i + b            a = σ(z)            (d + 1 parameters)
    index form      z_j = Σ_k W_jk a_k + b_j
    matrix form     z = W a + b                    W (n_l, n_{l-1})    (n_l (n_{l-1} + 1) parameters)
    batch form      Z = W A + b 1ᵀ                 A (n_{l-1}, m): MF stacks examples as COLUMNS
    collapse        W₂ (W₁ x + b₁) + b₂ = (W₂ W₁) x + (W₂ b₁ + b₂)
    with g(z) = α z + β after a layer:  W ← α W,  b ← α b + β   before the next one is multiplied in

W is the `weight` of torch's Linear. The rest of the library has examples as rows, so a batch of MF's is transposed at
the border: `dense_columns(W, b, A).T` is `torch.nn.functional.linear(A.T, W, b)`.

A neuron of two inputs has the line w₁ x₁ + w₂ x₂ + b = 0 as its boundary; w stands upright on it and points to z > 0.

Systems: neuron-and-dense-layer, linear-collapse
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Layer = tuple[Tensor, Tensor]
"""W (n_l, n_{l-1}) and b (n_l)."""
IDENTITY = (1.0, 0.0)


def terms(x: Tensor, w: Tensor) -> Tensor:
    """The products w_i x_i that a neuron adds up."""
    return w * x


def neuron(x: Tensor, w: Tensor, b: Tensor, activation: Callable[[Tensor], Tensor]) -> Tensor:
    """σ(w·x + b) of one example x (d), or of each row of a batch (b, d)."""
    return activation(terms(x, w).sum(dim=-1) + b)


def step(z: Tensor) -> Tensor:
    """1 where z ≥ 0, else 0: with this activation a neuron is the perceptron (a tie is class 1)."""
    return (z >= 0).to(z.dtype)


def dense_by_index(w: Tensor, b: Tensor, a: Tensor) -> Tensor:
    """z_j = Σ_k W_jk a_k + b_j, index by index."""
    return torch.einsum("jk,k->j", w, a) + b


def dense(w: Tensor, b: Tensor, a: Tensor) -> Tensor:
    """z = W a + b of one example a (n_{l-1})."""
    return w @ a + b


def dense_columns(w: Tensor, b: Tensor, a: Tensor) -> Tensor:
    """Z = W A + b 1ᵀ of m examples that are the columns of A (n_{l-1}, m)."""
    return w @ a + b[:, None]


def decision_line(w: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Slope and intercept of the boundary x₂ = −(w₁/w₂) x₁ − b/w₂ of a neuron of two inputs."""
    if w.shape != (2,) or w[1] == 0:
        raise ValueError(
            f"w {w.tolist()}: a line x₂ = m x₁ + c needs two weights, the second not 0 (else it is upright)"
        )
    return -w[0] / w[1], -b / w[1]


def half_space(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """On which side of w·x + b = 0 each point lies: 1 (where w points), −1, or 0 on the boundary."""
    return torch.sign(x @ w + b)


def collapse(layers: Sequence[Layer], affine: Sequence[tuple[float, float]] = ()) -> Layer:
    """The one affine map that a stack of layers computes, first layer first.

    `affine` holds (α, β) of the activation α z + β after each layer; left out, every activation is the identity.
    """
    each = list(affine) or [IDENTITY] * len(layers)
    if not layers or len(each) != len(layers):
        raise ValueError(f"{len(layers)} layers and {len(each)} activations; give one (α, β) for each layer")
    first = layers[0][0]
    weight, bias = torch.eye(first.shape[1], dtype=first.dtype), first.new_zeros(first.shape[1])
    for (w, b), (scale, shift) in zip(layers, each, strict=True):
        weight, bias = scale * w @ weight, scale * (w @ bias + b) + shift
    return weight, bias
