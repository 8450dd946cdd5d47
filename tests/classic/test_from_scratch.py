"""Gradients by hand against autograd, and the same path under any optimizer."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from descend.classic.from_scratch import CHAPTER_6_RATE, backward, chapter_6, descend_once, forward, losses, train_step
from descend.ops.dense import Layer
from tests.close import close


def deep() -> tuple[list[Layer], Tensor, Tensor]:
    """A network of four layers with units on both sides of 0."""
    random = torch.Generator().manual_seed(0)
    widths = [3, 6, 5, 4, 1]
    layers = [
        (
            torch.randn(o, n, generator=random, dtype=torch.float64),
            torch.randn(o, generator=random, dtype=torch.float64),
        )
        for n, o in pairwise(widths)
    ]
    x = torch.randn(9, 3, generator=random, dtype=torch.float64)
    return layers, x, (x[:, 0] > 0).double()


def by_autograd(layers: list[Layer], x: Tensor, y: Tensor) -> tuple[Tensor, list[Tensor]]:
    leaves = [v.clone().requires_grad_() for layer in layers for v in layer]
    a = x
    for i in range(0, len(leaves), 2):
        a = F.linear(a, leaves[i], leaves[i + 1])
        a = a.relu() if i < len(leaves) - 2 else a
    loss = F.binary_cross_entropy_with_logits(a[:, 0], y)
    return loss.detach(), list(torch.autograd.grad(loss, leaves))


@pytest.mark.system("from-scratch-training")
@pytest.mark.parametrize("made", [chapter_6, deep])
def test_gradients_are_autograds(made: Callable[[], tuple[list[Layer], Tensor, Tensor]]) -> None:
    layers, x, y = made()
    loss, expected = by_autograd(layers, x, y)
    done = forward(layers, x)
    close(losses(done, y).mean(), loss)
    for ours, theirs in zip([v for g in backward(layers, done, y) for v in g], expected, strict=True):
        close(ours, theirs)


@pytest.mark.system("from-scratch-training")
@pytest.mark.system("from-scratch-training", "any-optimizer")
@pytest.mark.parametrize(
    "rule",
    [
        lambda p: torch.optim.SGD(p, 0.1),
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
        lambda p: torch.optim.RMSprop(p, 0.01),
        lambda p: torch.optim.Adam(p, 0.01),
    ],
)
def test_same_path_as_autograd_with_any_optimizer(rule: Callable[[list[Tensor]], torch.optim.Optimizer]) -> None:
    layers, x, y = deep()
    theirs = [v.clone().requires_grad_() for layer in layers for v in layer]
    ours_rule, their_rule = rule([v for layer in layers for v in layer]), rule(theirs)
    for _ in range(20):
        loss = train_step(layers, x, y, ours_rule)
        expected, grads = by_autograd(list(zip(theirs[::2], theirs[1::2], strict=True)), x, y)
        for leaf, gradient in zip(theirs, grads, strict=True):
            leaf.grad = gradient
        their_rule.step()
        close(torch.tensor(loss, dtype=torch.float64), expected)
    for a, b in zip([v for layer in layers for v in layer], theirs, strict=True):
        close(a, b)


@pytest.mark.system("from-scratch-training")
@pytest.mark.system("from-scratch-training", "learns")
def test_chapter_6_learns() -> None:
    """The step of the book lowers the loss; going on brings it near zero."""
    layers, x, y = chapter_6()
    before = losses(forward(layers, x), y)
    after = losses(forward(descend_once(layers, backward(layers, forward(layers, x), y), CHAPTER_6_RATE), x), y)
    assert after.mean() < before.mean()
    assert after[0] < before[0]
    optimizer = torch.optim.Adam([v for layer in layers for v in layer], 0.05)
    for _ in range(600):
        loss = train_step(layers, x, y, optimizer)
    assert loss < 1e-2
    assert not any(v.requires_grad for layer in layers for v in layer)


@pytest.mark.system("gradient-descent", "rate-sweep")
def test_a_sweep_of_the_rate_finds_where_the_curve_of_chapter_6_stops_falling() -> None:
    """MF 7.1: the loss falls at every step with η = 0.1; far larger rates overshoot."""

    def curve(eta: float) -> list[float]:
        layers, x, y = chapter_6()
        found = []
        for _ in range(60):
            done = forward(layers, x)
            found.append(losses(done, y).mean().item())
            layers = descend_once(layers, backward(layers, done, y), eta)
        return found

    falls = {eta: all(b < a for a, b in pairwise(curve(eta))) for eta in (0.1, 0.5, 2.0, 8.0, 32.0)}
    assert falls[0.1]
    assert falls[0.5]
    assert not falls[32.0]
    assert sorted(falls.values(), reverse=True) == list(falls.values())  # beyond the limit it never falls again
