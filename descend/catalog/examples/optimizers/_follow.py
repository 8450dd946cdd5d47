"""How the examples of this folder run a rule: from a start, with gradients of a function or with given ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from descend.catalog.examples import real
from descend.contracts import Rule
from descend.optim.trajectory import Path, trajectory


def follow(rule: Rule, loss: Callable[[Tensor], Tensor], start: Any, steps: int) -> Path:
    """The path of a rule on a function of a vector. The vector is a row of a matrix, because only matrices decay."""
    path = trajectory(
        lambda p: rule.build(nn.ParameterList(p)), lambda theta: loss(theta[0]), real(start).reshape(1, -1), steps
    )
    return Path(path.theta[:, 0], path.seen[:, 0], path.losses)


def feed_gradients(rule: Rule, start: Any, gradients: Iterable[Any]) -> Iterator[tuple[Tensor, dict[str, Tensor]]]:
    """The iterate and the state after each of the gradients."""
    p = nn.Parameter(torch.atleast_1d(real(start))[None])
    optimizer = rule.build(nn.ParameterList([p]))
    for g in gradients:
        p.grad = torch.atleast_1d(real(g))[None]
        optimizer.step()
        state = {
            name: value[0].clone()
            for name, value in optimizer.state[p].items()
            if torch.is_tensor(value) and value.dim()
        }
        yield p.detach()[0].clone(), state


def steps_of(rule: Rule, gradients: Iterable[Any]) -> list[Tensor]:
    """How far each step goes against the gradient's sign, from 0."""
    thetas = [torch.zeros(1, dtype=torch.float64), *(theta for theta, _ in feed_gradients(rule, 0.0, gradients))]
    return [(before - after)[0] for before, after in pairwise(thetas)]


def dld_bowl(x: Tensor) -> Tensor:
    """2 x₁² + 100 x₂², the test function of DLD 1.7 and S940 2.2."""
    return 2 * x[0] ** 2 + 100 * x[1] ** 2
