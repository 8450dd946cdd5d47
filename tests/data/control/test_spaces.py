"""Spaces as vectors: every kind of observation, every kind of action, and what is refused."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces

from descend.data.control.environments import Arena, Environments, World, make_env, spaces_of
from descend.data.control.spaces import describe_spaces, make_reader, make_writer
from descend.errors import Mistake
from tests.data.control.test_environments import through_json
from tests.data.worlds import LIMIT, PARTS

BOX = spaces.Box(-1.0, 1.0, (2,), np.float32)


@pytest.mark.parametrize(
    "space",
    [
        BOX,
        spaces.Box(0, 9, (2, 3), np.int64),
        spaces.Discrete(4),
        spaces.Discrete(3, start=-1),
        spaces.MultiDiscrete([2, 3]),
        spaces.MultiBinary(3),
        spaces.Tuple((spaces.Discrete(2), BOX)),
        spaces.Dict({"b": spaces.Discrete(2), "a": spaces.Dict({"y": BOX, "x": spaces.MultiBinary(2)})}),
    ],
    ids=lambda space: type(space).__name__,
)
def test_observations_are_what_gymnasium_flattens(space: spaces.Space) -> None:
    space.seed(0)
    read = make_reader(space)
    for _ in range(5):
        seen = space.sample()
        found = read(seen)
        assert found.dtype == np.float32
        assert found.shape == (spaces.flatdim(space),)
        assert np.array_equal(found, np.asarray(spaces.flatten(space, seen), np.float32))


def test_what_is_read_is_not_the_environments_own_memory() -> None:
    shown = np.zeros(2, np.float32)
    read = make_reader(BOX)(shown)
    shown[0] = 1
    assert read.tolist() == [0, 0]


def test_actions_are_counted_from_zero_and_vectors_stay_in_the_box() -> None:
    write = make_writer(spaces.Discrete(3, start=5))
    assert [write(np.array(a)) for a in range(3)] == [5, 6, 7]
    assert make_writer(spaces.Discrete(3))(np.array(2)) == 2
    write = make_writer(spaces.Box(np.array([[-1.0, 0.0]]), np.array([[1.0, 0.5]]), dtype=np.float64))
    assert write(np.array([-9.0, 9.0])).tolist() == [[-1.0, 0.5]]


def test_sizes() -> None:
    assert (found := spaces_of("Mixed-v0")).observations == 9
    assert (found.actions, found.finite, found.states) == (2, True, 0)
    assert spaces_of("Taxi-v4").states == 500
    assert spaces_of("Blackjack-v1").observations == 32 + 11 + 2
    world = World("Shaped-v0", taken=spaces.Box(-1, 1, (2, 3)))
    assert (describe_spaces(world.env).actions, describe_spaces(world.env).finite) == (6, False)


@pytest.mark.parametrize(
    ("how", "match"),
    [
        ({"taken": spaces.MultiDiscrete([2, 2])}, r"actions are MultiDiscrete\(\[2 2\]\); choose one with Discrete"),
        ({"taken": spaces.Box(-np.inf, np.inf, (1,))}, r"actions are an unbounded Box\(-inf, inf, \(1,\), float32\)"),
        ({"taken": spaces.Dict({"a": spaces.Discrete(2)})}, "actions are Dict"),
        ({"seen": spaces.Text(4)}, "observations are Text.*with a Text that has no fixed number"),
        ({"seen": spaces.Tuple((BOX, spaces.Sequence(BOX)))}, "observations are Tuple.*with a Sequence"),
        ({"seen": spaces.Box(0, 255, (84, 84, 3), np.uint8)}, "observations are Box with images of 84×84×3"),
    ],
)
def test_what_no_policy_could_see_or_do_is_refused(how: dict[str, Any], match: str) -> None:
    with pytest.raises(Mistake, match=f"--data.env Shaped-v0: {match}") as caught:
        make_env("Shaped-v0", **how)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["FrozenLake-v1", "Blackjack-v1", "Mixed-v0"])
def test_open_episodes_of_every_kind_come_back_to_the_bit(name: str) -> None:
    """Discrete, Tuple and Dict observations."""
    envs, rng = Environments(name, 3, seed=1), np.random.default_rng(0)
    actions = [rng.integers(envs.envs[0].env.action_space.n, size=3) for _ in range(40)]
    for row in actions[:13]:
        envs.step(row)
    again = Environments(name, 3, seed=1)
    again.load_state_dict(through_json(envs.state_dict()))
    for row in actions[13:]:
        for (key, a), b in zip(envs.step(row).items(), again.step(row).values(), strict=True):
            assert np.array_equal(a, b), key
    assert envs.finished == again.finished
    assert envs.lengths == again.lengths


def test_an_episode_is_played_through_a_dict() -> None:
    assert list(gymnasium.spaces.Dict(PARTS).spaces) == sorted(PARTS)
    seen = []

    def act(observation: torch.Tensor) -> torch.Tensor:
        seen.append(observation)
        return torch.ones(len(observation), dtype=torch.long)

    found = Arena("Mixed-v0").play(act, [3, 4])
    assert found.returns.tolist() == [LIMIT, LIMIT]
    assert found.lengths.tolist() == [LIMIT, LIMIT]
    assert all(x.shape == (2, 9) for x in seen)
    assert all(row[:3].sum() == 1 for x in seen for row in x)  # the card, one-hot, comes first
