"""Supervised learning with any model and any cost: the one step that images, texts and tables share.

    ȳ = G(x, θ)        G = f⁽ᴸ⁾ ∘ … ∘ f⁽¹⁾, any composition        L(θ) = (1/m) Σ_i C(ȳ_i, y_i)

The head goes with the kind of target, and its cost takes what the model puts out before the head's function:

    classes     softmax     −log softmax(z)_y                                ∂C/∂z = p − y
    yes or no   sigmoid     −y log σ(z) − (1 − y) log σ(−z)                  ∂C/∂z = σ(z) − y
    numbers     identity    (z − y)², summed over a target's parts           ∂C/∂z = 2 (z − y)

The mean is over examples. S940 1.5 derives its update with ½ (ŷ − y)², half of this.

Systems: supervised-model-composition, output-heads-by-task
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from descend.contracts import Batch, Move, Task
from descend.losses.classification import binary_cross_entropy, cross_entropy


@dataclass(frozen=True)
class Head:
    """What a model's output means: the function that makes answers of it, and what a wrong one costs."""

    answer: Callable[[Tensor], Tensor]
    """z -> probabilities or numbers."""
    cost: Callable[[Tensor, Tensor], Tensor]
    """z and y -> one value for each example (b)."""


def squared_error(z: Tensor, y: Tensor) -> Tensor:
    """Σ_k (z_k − y_k)² of each example: (b) or (b, k) -> (b)."""
    return (z - y).square().flatten(1).sum(dim=1) if y.dim() > 1 else (z - y).square()


def one_logit(z: Tensor, y: Tensor) -> Tensor:
    """Binary cross-entropy of logits (b) or (b, 1) for y in {0, 1} (b)."""
    return binary_cross_entropy(z.reshape(y.shape), y.to(z.dtype))


CLASSES = Head(lambda z: z.softmax(dim=-1), cross_entropy)
YES_OR_NO = Head(torch.sigmoid, one_logit)
NUMBERS = Head(lambda z: z, squared_error)


class Supervise(Task):
    """A batch is x and y; the model G makes an output of x, the cost C compares it with y."""

    def __init__(self, model: nn.Module, cost: Callable[[Tensor, Tensor], Tensor]):
        super().__init__()
        self.model, self.cost = model, cost

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("model", lambda: self.cost(self.model(batch["x"]), batch["y"]).mean())

    def score(self, batch: Batch) -> dict[str, Tensor]:
        return {"loss": self.cost(self.model(batch["x"]), batch["y"])}
