"""The shape of a matrix as a lens, y = W x, and why an expander pays only with a nonlinearity.

    compressor     fewer outputs than inputs: what is orthogonal to all rows is lost; nullity = inputs − rank
    expander       more outputs: the image is still a subspace of dimension ≤ inputs
    mixer          square and of full rank: a change of basis, nothing lost; a square W of lower rank is a "collapser"

Points red-blue-red on a line cannot be cut by one threshold. A linear expander does not help: W x is still a line.
x → [x, x²] does, and so does ReLU(W x + b). "Separable" is decided by a linear program
(`descend.theory.perceptron`), not by training:

    there are w, c with s_i (w·x_i + c) ≥ 1 for all i, where s_i = ±1 is the label

Systems: matrix-shape-lenses
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from descend.ops.math.matrices import rank


@dataclass(frozen=True)
class Lens:
    """What W (outputs, inputs) does to its input."""

    kind: str
    inputs: int
    outputs: int
    rank: int
    """The dimension of the image."""

    @property
    def nullity(self) -> int:
        """The dimensions that are lost."""
        return self.inputs - self.rank


def lens(w: Tensor) -> Lens:
    """The report on a weight matrix (outputs, inputs)."""
    outputs, inputs = w.shape
    kept = rank(w)
    if outputs == inputs:
        kind = "mixer" if kept == inputs else "collapser"
    else:
        kind = "compressor" if outputs < inputs else "expander"
    return Lens(kind, inputs, outputs, kept)


def with_squares(x: Tensor) -> Tensor:
    """The lift x → [x, x²]: (n, d) -> (n, 2d)."""
    return torch.cat([x, x.square()], -1)


def expand(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """The linear expander W x + b for every row of x: (n, inputs) -> (n, outputs)."""
    return x @ w.mT + b


def expand_relu(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """ReLU(W x + b): the expander with the nonlinearity that makes it useful."""
    return expand(x, w, b).relu()
