"""The process as a list of outcomes: against arrays, its returns, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from descend.errors import Mistake
from descend.ops.decisions.process import DecisionProcess, Outcomes, ProcessNames, build_process, process_from_arrays
from descend.ops.returns import discounted_returns
from tests.close import close


def random_arrays(states: int = 6, actions: int = 3, seed: int = 0) -> tuple[Tensor, Tensor]:
    """P and an R that depends on s', too."""
    random = torch.Generator().manual_seed(seed)
    p = torch.rand(states, actions, states, generator=random, dtype=torch.float64)
    p = p * (torch.rand(p.shape, generator=random) < 0.6)
    p[..., 0] += 0.1
    return p / p.sum(-1, keepdim=True), torch.randn(p.shape, generator=random, dtype=torch.float64)


@pytest.mark.system("mdp")
@pytest.mark.system("mdp", "model")
def test_the_list_holds_what_the_arrays_say() -> None:
    p, r = random_arrays()
    process = process_from_arrays(p, r, 0.9)
    assert (process.states, process.actions, process.gamma) == (6, 3, 0.9)
    close(process.transitions(), p)
    close(process.expected_reward, (p * r).sum(-1))
    close(process_from_arrays(p, r.mean(-1), 0.9).expected_reward, r.mean(-1))
    shuffled = torch.randperm(len(process.pair), generator=torch.Generator().manual_seed(1))
    o = (process.pair // 3, process.pair % 3, process.probability, process.following, process.reward, process.ends)
    again = build_process((6, 3), Outcomes(*(x[shuffled] for x in o)), 0.9, process.start)
    close(again.transitions(), p)
    close(again.expected_reward, process.expected_reward)


@pytest.mark.system("mdp")
@pytest.mark.system("mdp", "returns")
def test_both_conventions_give_one_return() -> None:
    """G_t = Σ γ^k R_{t+k+1} with R_{t+1} = r_t, and G_t = r_t + γ G_{t+1}."""
    random = torch.Generator().manual_seed(0)
    r, gamma, last = torch.randn(4, 7, generator=random, dtype=torch.float64), 0.9, 7
    g = discounted_returns(r, torch.zeros(4, last, dtype=torch.bool), gamma)
    later = torch.cat([torch.full((4, 1), torch.nan).double(), r], dim=1)  # R_1 is column 1: there is no R_0
    for t in range(last):
        close(g[:, t], sum(gamma**k * later[:, t + k + 1] for k in range(last - t)))
        following = g[:, t + 1] if t + 1 < last else torch.zeros(4).double()
        close(g[:, t], r[:, t] + gamma * following)


def test_a_state_that_keeps_to_itself_without_reward_is_an_end() -> None:
    p = torch.zeros(3, 1, 3, dtype=torch.float64)
    p[0, 0, 1], p[1, 0, 1], p[2, 0, 2] = 1.0, 1.0, 1.0
    r = torch.tensor([[5.0], [0.0], [1.0]])
    process = process_from_arrays(p, r, 1.0)
    assert process.ends.tolist() == [True, True, False]  # state 2 earns for ever


def test_exploring_starts_and_another_discount() -> None:
    process = process_from_arrays(*random_arrays(), 0.9)
    assert process.begun_in(torch.arange(6) < 2).start.tolist() == [0.5, 0.5, 0, 0, 0, 0]
    assert process.discounted(0.5).gamma == 0.5


NAMES = ProcessNames(states=("home", "away"), actions=("stay", "go"))
GOOD = Outcomes([0, 0, 1, 1], [0, 1, 0, 1], [1.0] * 4, [0, 1, 1, 0], [0.0, 1.0, 2.0, 3.0], [False] * 4)
HOME = torch.tensor([1.0, 0.0])


def build(outcomes: Outcomes = GOOD, gamma: float = 0.9, start: Tensor = HOME) -> DecisionProcess:
    return build_process((2, 2), outcomes, gamma, start, NAMES)


@pytest.mark.system("mdp", "model")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: build(replace(GOOD, probability=[1.0, 1.0, 0.9, 1.0])),
            "state away, action stay: the probabilities sum to 0.9, not 1",
        ),
        (
            lambda: build(Outcomes([0, 0, 1], [0, 1, 0], [1.0] * 3, [0, 1, 1], [0.0] * 3, [False] * 3)),
            "state away, action go: the probabilities are missing: give each action of the state an outcome",
        ),
        (
            lambda: build(replace(GOOD, reward=[0.0, float("nan"), 0.0, 0.0])),
            "state home, action go: reward nan must be a finite number",
        ),
        (
            lambda: build(replace(GOOD, probability=[1.0, -0.5, 1.0, 1.0])),
            "state home, action go: probability -0.5 must be from 0 to 1",
        ),
        (lambda: build(replace(GOOD, following=[0, 2, 1, 0])), "next state 2: there are 2, numbered from 0"),
        (lambda: build(gamma=1.01), r"gamma 1.01: must be in \[0, 1\), or 1 where every episode ends"),
        (lambda: build(gamma=float("nan")), "gamma nan: must be in"),
        (lambda: build(start=torch.tensor([0.5, 0.4])), "start: give a probability for each of the 2 states"),
        (lambda: process_from_arrays(torch.ones(2, 2, 3), torch.ones(2, 2), 0.9), r"P has shape \(2, 2, 3\)"),
        (lambda: process_from_arrays(torch.eye(2)[:, None], torch.ones(2), 0.9), r"R has shape \(2,\); it must be"),
    ],
)
def test_what_is_wrong_is_named(make: Callable[[], DecisionProcess], message: str) -> None:
    assert build().states == 2
    with pytest.raises(Mistake, match=message):
        make()
