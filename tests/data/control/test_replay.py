"""The replay memory: overwrite order, uniform sampling; the stream's exploration and its exact state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from torch import Tensor

from descend.data.control.environments import Environments
from descend.data.control.replay import Explore, Replay, ReplayBuffer
from descend.errors import Mistake
from tests.data.control.test_environments import through_json


def numbered(first: int, count: int) -> dict[str, np.ndarray]:
    return {"n": np.arange(first, first + count), "pair": np.arange(first, first + count)[:, None] * [1.0, -1.0]}


@pytest.mark.system("replay-buffer")
@pytest.mark.system("replay-buffer", "ring")
def test_the_oldest_goes_first() -> None:
    buffer = ReplayBuffer(5)
    buffer.add(numbered(0, 3))
    assert buffer.size == 3
    buffer.add(numbered(3, 4))  # 0 and 1 make room for 5 and 6
    assert buffer.size == 5
    assert buffer.arrays["n"].tolist() == [5, 6, 2, 3, 4]
    assert buffer.arrays["pair"][:, 1].tolist() == [-5, -6, -2, -3, -4]
    buffer.add(numbered(7, 1))
    assert sorted(buffer.arrays["n"].tolist()) == [3, 4, 5, 6, 7]


@pytest.mark.system("replay-buffer")
@pytest.mark.system("replay-buffer", "uniform")
@pytest.mark.parametrize("held", [7, 40])
def test_samples_are_uniform_over_what_is_held(held: int) -> None:
    """χ² against the uniform distribution, half full and after the ring has closed."""
    buffer = ReplayBuffer(20)
    buffer.add(numbered(0, held))
    rng = np.random.default_rng(0)
    drawn = np.concatenate([buffer.sample(100, rng)["n"] for _ in range(200)])
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == list(range(max(0, held - 20), held))
    assert chisquare(counts).pvalue > 0.01


@pytest.mark.system("replay-buffer")
@pytest.mark.system("replay-buffer", "whole-rows")
def test_a_sample_is_whole_rows_and_knows_their_numbers() -> None:
    buffer = ReplayBuffer(8)
    for first in range(0, 30, 3):
        buffer.add(numbered(first, 3))
        rows = buffer.sample(50, np.random.default_rng(first))
        assert np.array_equal(rows["ids"], rows["n"])
        assert np.array_equal(rows["pair"], rows["n"][:, None] * [1.0, -1.0])


def test_a_memory_of_another_size_is_refused() -> None:
    buffer = ReplayBuffer(5)
    buffer.add(numbered(0, 9))
    with pytest.raises(Mistake, match="holds 5 rows; resume with the same"):
        ReplayBuffer(6).load_state_dict(buffer.state_dict())


def test_epsilon_falls_along_a_line() -> None:
    explore = Explore(first=1.0, last=0.1, steps=100)
    assert [explore(n) for n in (0, 50, 100, 1000)] == pytest.approx([1.0, 0.55, 0.1, 0.1])


def prefer_zero(observation: Tensor) -> Tensor:
    """Action values that favour action 0 and depend on the observation."""
    return torch.stack([observation[:, 0].abs() + 1, observation[:, 0]], -1)


def stream(explore: Explore, copies: int = 4, seed: int = 0, capacity: int = 300) -> Replay:
    return Replay(Environments("CartPole-v1", copies, seed), prefer_zero, ReplayBuffer(capacity), explore, batch=8)


@pytest.mark.parametrize(("epsilon", "share"), [(0.0, 0.0), (0.4, 0.2), (1.0, 0.5)])
def test_a_random_action_comes_with_probability_epsilon(epsilon: float, share: float) -> None:
    """Of two actions the greedy one is 0, so 1 comes with probability ε/2 (4 standard errors)."""
    replay = stream(Explore(0, epsilon, epsilon), copies=20, capacity=2000)
    for _ in range(100):
        next(replay)
    ones = replay.buffer.arrays["action"].mean()
    assert abs(ones - share) <= 4 * np.sqrt(share * (1 - share) / 2000)


def test_warmup_fills_the_memory_first() -> None:
    replay = stream(Explore(warmup=100))
    batch = next(replay)
    assert replay.envs.steps == 104
    assert replay.buffer.added == 104
    assert batch["draw"].tolist() == [0] * 8
    assert {name: tuple(x.shape) for name, x in batch.items()} == {
        "observation": (8, 4),
        "action": (8,),
        "reward": (8,),
        "next": (8, 4),
        "terminated": (8,),
        "truncated": (8,),
        "ids": (8,),
        "draw": (8,),
    }
    next(replay)
    assert replay.envs.steps == 108


def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.system("replay-buffer", "resumed")
def test_the_stream_goes_on_to_the_bit() -> None:
    """Mid-episode, with a memory that has been round the ring; the global random state plays no part."""
    one = stream(Explore(warmup=50, steps=800))
    for _ in range(120):
        next(one)
    state = through_json(one.state_dict())
    torch.manual_seed(1)
    following = [next(one) for _ in range(60)]
    other = stream(Explore(warmup=50, steps=800))
    other.load_state_dict(state)
    torch.manual_seed(2)
    assert all(same(a, next(other)) for a in following)


def test_seeds_make_other_streams() -> None:
    assert not same(next(stream(Explore())), next(stream(Explore(), seed=1)))
