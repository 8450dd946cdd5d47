"""The books' walkthroughs as traces: the same numbers, where the books' are right, and every one in between.

2-3-1            VOM 5.2 and 5.4.4: ReLU, sigmoid, half squared error, y = 1; the adjoint of z2 is δ₂, of z1 δ₁
2-3-1-bce        MF 6.4 and 6.8: sample 1, cross-entropy, y = 0; the adjoint of z2 is ŷ − y
lstm-cell        MF 21.2.3: two steps, all eight matrices 0.1 I; the adjoint of c1 is (21.18) with the total dh1
attention-head   VOM 9.3 and 12.4.6: three tokens; the adjoints of A, S, Q, K, V are steps 1 to 5
convolution      DLD 4.3: the local Jacobian of y in x is the Toeplitz matrix of the kernel
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F


class Walkthrough(NamedTuple):
    """A function, its inputs in order, and where it is from."""

    about: str
    fn: Callable[..., Tensor]
    inputs: tuple[Tensor, ...]


def as_double(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def half_squared_error(x: Tensor, W1: Tensor, b1: Tensor, W2: Tensor, b2: Tensor) -> Tensor:
    W1x = W1 @ x
    z1 = W1x + b1
    h1 = z1.relu()
    z2 = W2 @ h1 + b2
    y = z2.sigmoid()
    error = y - 1
    loss = (error**2).sum() / 2
    return loss


def cross_entropy(x: Tensor, W1: Tensor, b1: Tensor, W2: Tensor, b2: Tensor) -> Tensor:
    W1x = W1 @ x
    z1 = W1x + b1
    a1 = z1.relu()
    z2 = W2 @ a1 + b2
    y = z2.sigmoid()
    loss = -(1 - y).log().sum()
    return loss


def two_steps(x1: Tensor, x2: Tensor, Wx: Tensor, Wh: Tensor) -> Tensor:
    """Wx and Wh stack the matrices of the gates i, f, o and of the candidate g; no biases, h0 = c0 = 0."""
    h0 = c0 = torch.zeros_like(x1)
    i1, f1, o1, g1 = (Wx @ x1 + Wh @ h0).chunk(4)
    c1 = f1.sigmoid() * c0 + i1.sigmoid() * g1.tanh()
    h1 = o1.sigmoid() * c1.tanh()
    i2, f2, o2, g2 = (Wx @ x2 + Wh @ h1).chunk(4)
    c2 = f2.sigmoid() * c1 + i2.sigmoid() * g2.tanh()
    h2 = o2.sigmoid() * c2.tanh()
    loss = h1.sum() + h2.sum()
    return loss


def head(X: Tensor, WQ: Tensor, WK: Tensor, WV: Tensor, G: Tensor) -> Tensor:
    """H = softmax(Q Kᵀ/√d_k) V, and ⟨G, H⟩, so that the adjoint of H is G."""
    Q, K, V = X @ WQ, X @ WK, X @ WV
    Kt = K.T
    QKt = Q @ Kt
    S = QKt / Q.shape[-1] ** 0.5
    A = S.softmax(dim=-1)
    H = A @ V
    loss = (G * H).sum()
    return loss


def correlate(x: Tensor, w: Tensor) -> Tensor:
    image, kernel = x.view(1, 1, -1), w.view(1, 1, -1)
    y = F.conv1d(image, kernel, padding=1)
    loss = (y**2).sum() / 2
    return loss


GATES = 0.1 * torch.eye(2, dtype=torch.float64).repeat(4, 1)

EXAMPLES = {
    "2-3-1": Walkthrough(
        "the 2-3-1 network of VOM 5.2 and 5.4.4, half squared error, y = 1",
        half_squared_error,
        (
            as_double([1.0, 0.5]),
            as_double([[0.2, 0.4], [-0.5, 0.3], [0.1, -0.2]]),
            as_double([0.1, -0.1, 0.2]),
            as_double([[0.6, -0.4, 0.5]]),
            as_double([-0.2]),
        ),
    ),
    "2-3-1-bce": Walkthrough(
        "the 2-3-1 network of MF 6.4 and 6.8, sample 1, cross-entropy, y = 0",
        cross_entropy,
        (
            as_double([0.5, 0.2]),
            as_double([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]),
            as_double([0.01, 0.02, 0.03]),
            as_double([[0.7, 0.8, 0.9]]),
            as_double([0.1]),
        ),
    ),
    "lstm-cell": Walkthrough(
        "two steps of an LSTM, MF 21.2.3, every matrix 0.1 I, loss = sum(h1) + sum(h2)",
        two_steps,
        (as_double([1.0, 0.5]), as_double([0.5, -1.0]), GATES, GATES.clone()),
    ),
    "attention-head": Walkthrough(
        "one attention head on three tokens, VOM 9.3 and 12.4.6; G is the adjoint of its output",
        head,
        (
            as_double([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0]]),
            as_double([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]),
            as_double([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]),
            as_double([[1.0, 1.0], [0.0, 0.0], [0.0, 1.0], [1.0, 0.0]]),
            as_double([[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]]),
        ),
    ),
    "convolution": Walkthrough(
        "a convolution (cross-correlation, padding 1), DLD 4.3: its local Jacobian is a Toeplitz matrix",
        correlate,
        (as_double([1.0, 2.0, 0.0, -1.0, 3.0, 1.0]), as_double([1.0, -2.0, 3.0])),
    ),
}
