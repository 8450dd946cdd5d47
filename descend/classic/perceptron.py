"""The perceptron: a linear classifier that learns from its mistakes only.

    predict        z = w·x + b        step(z) = 1 if z ≥ 0 else 0, or ±1 in the same way
    start          w = 0, b = 0
    while some i has y_i (w·x_i + b) ≤ 0:        w ← w + η y_i x_i        b ← b + η y_i        y in {−1, +1}

A tie z = 0 is predicted as class 1, but counts as a mistake while learning: w = 0 must learn, too. The order of the
mistakes is left open by MF 2.3; here they are taken in passes over the data, in its order. With x̃ = (x, 1) and
w̃ = (w, b) the bias is one more weight, and so the code has it. η only scales the weights: from w = 0 the mistakes are
the same for every η > 0.

Data that no line separates keep the perceptron updating forever. The weights then return to where they were at the end
of an earlier pass (`cycle`), which proves that they will do so again.

Systems: perceptron, xor-and-inseparability
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.theory.perceptron import augment


@dataclass(frozen=True)
class Learned:
    """What a run of the rule left behind."""

    w: Tensor
    """The weights; of the augmented rule, the bias is the last."""
    updates: int
    epochs: int
    """Passes over the data; the last of a run that converged had no mistake."""
    converged: bool
    path: Tensor
    """The weights before the first update and after each (updates + 1, d)."""
    errors: tuple[int, ...]
    """After each pass: wrong answers, a tie being answered with class 1."""
    cycle: tuple[int, int] | None
    """Two passes that ended with the same weights, which are not the goal: the rule cycles forever."""

    @property
    def best_errors(self) -> int:
        """Fewest errors after any pass."""
        return min(self.errors)


def learn_through_origin(x: Tensor, y: Tensor, eta: float = 1.0, epochs: int = 1000) -> Learned:
    """The rule without a bias: x (n, d), y (n) in {−1, +1}."""
    if eta <= 0 or epochs < 1:
        raise Mistake(f"eta {eta}, epochs {epochs}: both must be above 0")
    signed = y[:, None] * x
    w = x.new_zeros(x.shape[1])
    path, errors = [w], []
    ended: dict[tuple[float, ...], int] = {}
    cycle: tuple[int, int] | None = None
    for epoch in range(1, epochs + 1):
        before, start = len(path), 0
        while len(wrong := (signed[start:] @ w <= 0).nonzero()):  # the next mistake of this pass
            i = start + int(wrong[0])
            w = w + eta * signed[i]
            path.append(w)
            start = i + 1
        errors.append(int(((x @ w >= 0) != (y > 0)).sum()))
        if len(path) == before:
            return Learned(w, len(path) - 1, epoch, True, torch.stack(path), tuple(errors), None)
        first = ended.setdefault(tuple(w.tolist()), epoch)
        if cycle is None and first != epoch:
            cycle = first, epoch
    return Learned(w, len(path) - 1, epochs, False, torch.stack(path), tuple(errors), cycle)


def learn(x: Tensor, y: Tensor, eta: float = 1.0, epochs: int = 1000) -> Learned:
    """The rule with a bias, which is the last of the weights."""
    return learn_through_origin(augment(x), y, eta, epochs)


class Perceptron:
    """The classifier. Labels are {−1, +1} or {0, 1}; predictions are in the labels that it learned from."""

    def __init__(self, eta: float = 1.0, epochs: int = 1000):
        self.eta, self.epochs = eta, epochs

    def fit(self, x: Tensor, y: Tensor) -> Perceptron:
        """Learn from x (n, d) and y (n); `learned` tells how it went."""
        found = set(y.tolist())
        if not found <= {-1, 1} and not found <= {0, 1}:
            raise Mistake(f"labels {sorted(found)[:4]}: the perceptron needs two classes, as −1 and 1 or as 0 and 1")
        self.low = 0 if 0 in found else -1
        self.learned = learn(x, torch.where(y > 0, 1, -1).to(x.dtype), self.eta, self.epochs)
        self.w, self.b = self.learned.w[:-1], self.learned.w[-1]
        return self

    def score(self, x: Tensor) -> Tensor:
        """z = w·x + b"""
        return x @ self.w + self.b

    def predict(self, x: Tensor) -> Tensor:
        """The class of each point; a tie is class 1."""
        return torch.where(self.score(x) >= 0, 1, self.low)
