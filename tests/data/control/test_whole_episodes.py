"""Whole episodes: each from its first state to its last, repeated by their seeds, resumed from a few numbers."""

from __future__ import annotations

import json

import gymnasium
import pytest
import torch
from torch import Tensor

from descend.data.control.environments import TRAIN, episode_seed
from descend.data.control.whole_episodes import WholeEpisodes
from descend.errors import Mistake


def by_chance(observation: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randint(2, (len(observation),), generator=generator)


def make(copies: int = 3, longest: int = 0, name: str = "CartPole-v1") -> WholeEpisodes:
    return WholeEpisodes(name, copies, 7, by_chance, lambda played: played, longest)


def test_every_row_is_one_episode_of_gymnasium() -> None:
    """The same actions from the same seed, in an environment of one's own."""
    stream = make()
    for draw in range(2):
        batch = next(stream)
        for i in range(3):
            env = gymnasium.make("CartPole-v1")
            seen, _ = env.reset(seed=episode_seed(TRAIN, 7, i, draw))
            length = int(batch["real"][i].sum())
            for t in range(length):
                assert torch.equal(batch["observation"][i, t], torch.from_numpy(seen))
                seen, reward, terminated, truncated, _ = env.step(int(batch["action"][i, t]))
                assert torch.equal(batch["next"][i, t], torch.from_numpy(seen))
                assert batch["reward"][i, t] == reward
                assert (bool(batch["terminated"][i, t]), bool(batch["truncated"][i, t])) == (terminated, truncated)
                assert (terminated or truncated) == (t == length - 1)
            assert not any(batch[name][i, length:].any() for name in ("reward", "observation", "terminated", "real"))
        assert batch["draw"].tolist() == [draw] * 3


def test_steps_and_returns_are_counted() -> None:
    stream = make()
    first, second = next(stream), next(stream)
    total = int(first["real"].sum() + second["real"].sum())
    assert stream.steps == total == second["played"][0]
    assert [value for _, value in stream.finished] == [
        float(b["real"][i].sum()) for b in (first, second) for i in range(3)
    ]


def test_a_time_limit_cuts_and_does_not_end() -> None:
    batch = next(make(longest=5))
    assert batch["real"].shape == (3, 5)
    assert batch["truncated"][:, -1].all()
    assert not batch["terminated"].any()


def test_it_goes_on_where_it_stood() -> None:
    stream = make()
    next(stream)
    state = stream.state_dict()
    assert len(json.dumps({name: value for name, value in state.items() if name not in ("finished", "lengths")})) < 100
    following, again = next(stream), make()
    again.load_state_dict(state)
    repeated = next(again)
    assert all(torch.equal(following[name], repeated[name]) for name in following)
    assert (again.steps, again.finished) == (stream.steps, stream.finished)
    with pytest.raises(Mistake, match="trained in 3 x CartPole-v1, not 2 x CartPole-v1"):
        make(copies=2).load_state_dict(state)
