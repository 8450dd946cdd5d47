"""Environments side by side: endings, seeds, and a state that brings open episodes back to the bit."""

from __future__ import annotations

import json
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from torch import Tensor

from descend.data.control import environments
from descend.data.control.environments import (
    TEST,
    VALID,
    Arena,
    Environments,
    Episodes,
    World,
    episode_seed,
    make_env,
    repeats_itself,
    spaces_of,
)
from descend.engine.state import pack, unpack
from descend.errors import Mistake
from tests.data.worlds import LIMIT


def through_json(state: dict[str, Any]) -> dict[str, Any]:
    """As a checkpoint keeps it."""
    tensors: dict[str, Tensor] = {}
    tree = json.loads(json.dumps(pack(state, tensors)))
    back: dict[str, Any] = unpack(tree, tensors)
    return back


def test_a_time_limit_truncates_and_keeps_the_last_observation() -> None:
    envs = Environments("Counter-v0", 1, seed=0)
    mark = envs.observation[0, 0]
    for _ in range(LIMIT - 1):
        rows = envs.step(np.array([0]))
        assert not rows["terminated"][0]
        assert not rows["truncated"][0]
    rows = envs.step(np.array([0]))
    assert rows["truncated"][0]
    assert not rows["terminated"][0]
    assert rows["next"].tolist() == [[mark, LIMIT]]  # not the first one of the next episode
    assert envs.observation[0, 1] == 0
    assert envs.observation[0, 0] != mark
    assert envs.finished == [(LIMIT, sum(range(1, LIMIT + 1)))]


def test_termination_is_told_apart() -> None:
    envs = Environments("Counter-v0", 2, seed=0)
    rows = envs.step(np.array([1, 0]))
    assert rows["terminated"].tolist() == [True, False]
    assert rows["truncated"].tolist() == [False, False]
    assert envs.observation[:, 1].tolist() == [0, 1]
    assert envs.steps == 2


def test_every_episode_has_its_own_seed() -> None:
    """Each copy and each episode starts elsewhere; the same seed gives the same episodes again."""
    marks = []
    for seed in (0, 0, 1):
        envs = Environments("Counter-v0", 3, seed)
        seen = [envs.observation[:, 0].copy()]
        for _ in range(4):
            envs.step(np.array([1, 1, 1]))
            seen.append(envs.observation[:, 0].copy())
        marks.append(np.stack(seen))
    assert np.array_equal(marks[0], marks[1])
    assert len(np.unique([marks[0], marks[2]])) == 30
    assert len({episode_seed(kind, 0, i) for kind in (0, VALID, TEST) for i in range(100)}) == 300


def play(envs: Environments, rng: np.random.Generator, steps: int) -> list[dict[str, np.ndarray]]:
    finite = spaces_of(envs.name).finite
    copies = len(envs.envs)
    return [
        envs.step(rng.integers(2, size=copies) if finite else rng.normal(size=(copies, 1)).astype(np.float32))
        for _ in range(steps)
    ]


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1"])
def test_open_episodes_come_back_to_the_bit(name: str) -> None:
    envs = Environments(name, 3, seed=4)
    play(envs, np.random.default_rng(0), 37)
    assert any(len(actions) > 1 for actions in envs.actions)  # inside episodes, not between them
    state = through_json(envs.state_dict())
    again = Environments(name, 3, seed=4)
    again.load_state_dict(state)
    for a, b in zip(play(envs, np.random.default_rng(1), 250), play(again, np.random.default_rng(1), 250), strict=True):
        for key in a:
            assert np.array_equal(a[key], b[key]), key
    assert envs.finished == again.finished
    assert envs.steps == again.steps


def test_an_environment_with_moods_is_refused_at_resume() -> None:
    envs = Environments("Moody-v0", 1, seed=0)
    with pytest.raises(Mistake, match="Moody-v0 cannot be resumed exactly"):
        Environments("Moody-v0", 1, seed=0).load_state_dict(envs.state_dict())


def test_another_environment_is_refused_at_resume() -> None:
    state = Environments("Counter-v0", 2, seed=0).state_dict()
    with pytest.raises(Mistake, match="trained in 2 x Counter-v0, not 3 x Counter-v0"):
        Environments("Counter-v0", 3, seed=0).load_state_dict(state)


def lean(observation: Tensor) -> Tensor:
    """Push where the pole leans: lasts for tens of steps, longer from some starts than from others."""
    return (observation[:, 2] > 0).long()


def test_many_episodes_at_once_are_the_episodes_one_by_one() -> None:
    seeds = [episode_seed(TEST, i) for i in range(6)]
    arena = Arena("CartPole-v1")
    returns = arena(lean, seeds)
    alone = []
    for seed in seeds:
        env, total, over = gymnasium.make("CartPole-v1"), 0.0, False
        observation, _ = env.reset(seed=seed)
        while not over:
            action = int(lean(torch.from_numpy(observation)[None])[0])
            observation, reward, terminated, truncated, _ = env.step(action)
            total, over = total + float(reward), terminated or truncated
        alone.append(total)
    assert returns.tolist() == alone
    assert len(set(alone)) > 1
    assert arena(lean, seeds).tolist() == alone


def test_evaluation_episodes_are_the_same_at_every_walk() -> None:
    valid = Episodes(VALID, 20)
    (first,), (second,) = list(valid), list(valid)
    assert torch.equal(first["seed"], second["seed"])
    assert not set(first["seed"].tolist()) & set(next(iter(Episodes(TEST, 100)))["seed"].tolist())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("CartPole-v11", "--data.env CartPole-v11: .* Did you mean 'CartPole-v1'"),
        ("Absent-v0", "--data.env Absent-v0: gymnasium cannot make it. pip install absent"),
        ("Absent-module-v0", "--data.env Absent-module-v0: gymnasium cannot make it. No module named 'nothing_here'"),
        ("nothing_here:Env-v0", "gymnasium cannot make it. No module named 'nothing_here'"),
        ("no such thing", "--data.env no such thing: gymnasium cannot make it"),
    ],
)
def test_an_environment_that_does_not_fit_is_named(name: str, message: str) -> None:
    with pytest.raises(Mistake, match=message) as caught:
        make_env(name)
    assert "\n" not in str(caught.value)


def test_vector_actions_stay_in_the_box() -> None:
    """A command beyond the motor's strength is the strongest command: the same step."""
    rows = []
    for command in (2.0, 50.0):
        envs = Environments("Pendulum-v1", 1, seed=0)
        rows.append(envs.step(np.array([[command]], np.float32)))
    assert np.array_equal(rows[0]["next"], rows[1]["next"])
    assert rows[0]["reward"] == rows[1]["reward"]


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("Sick-v0", "Sick-v0: the reward is nan after step 3 of an episode; mend the environment"),
        ("Blind-v0", "Blind-v0: number 0 of the observation is nan after step 3 of an episode"),
    ],
)
def test_what_is_no_number_is_named(name: str, match: str) -> None:
    envs = Environments(name, 2, seed=0)
    for _ in range(2):
        envs.step(np.array([0, 0]))
    with pytest.raises(Mistake, match=match):
        envs.step(np.array([0, 0]))
    with pytest.raises(Mistake, match=match):
        Arena(name)(lambda x: torch.zeros(len(x), dtype=torch.long), [1])


def test_large_numbers_are_numbers() -> None:
    """Their sum overflows, none of them does."""
    world = World("Counter-v0")
    world.refuse_numbers(np.full(3, 3e38, np.float32), 0.0)


def test_an_episode_that_never_ends_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "ENDLESS", 30)
    match = "Endless-v0: an episode has not ended after 30 steps, and .* no time limit; give it one: --data.longest 500"
    wait = lambda x: torch.zeros(len(x), dtype=torch.long)
    with pytest.raises(Mistake, match=match):
        Arena("Endless-v0")(wait, [1])
    envs = Environments("Endless-v0", 1, seed=0)
    play(envs, np.random.default_rng(0), 29)
    with pytest.raises(Mistake, match=match):
        envs.step(np.array([0]))
    limited = Arena("Endless-v0", 50).play(wait, [1, 2])  # a limit of ours is one like the environment's own
    assert limited.lengths.tolist() == [50, 50]
    envs = Environments("Endless-v0", 1, 0, 35)
    truncated = [bool(envs.step(np.array([0]))["truncated"][0]) for _ in range(70)]
    assert [i for i, cut in enumerate(truncated) if cut] == [34, 69]
    assert envs.lengths == [35, 35]
    assert World("CartPole-v1").most == np.inf  # it has a limit of its own


def test_whether_an_environment_repeats_itself() -> None:
    assert repeats_itself("CartPole-v1")
    assert repeats_itself("Pendulum-v1")
    assert repeats_itself("Counter-v0")
    assert not repeats_itself("Moody-v0")


def test_a_return_that_differs_is_noticed_at_resume() -> None:
    """What is seen may come back where the reward does not."""
    envs = Environments("CartPole-v1", 1, seed=0)
    envs.step(np.array([0]))
    state = envs.state_dict()
    state["total"] = [0.5]
    with pytest.raises(Mistake, match=r"cannot be resumed exactly: .* led to a different return"):
        Environments("CartPole-v1", 1, seed=0).load_state_dict(state)


def test_checkpoints_of_the_last_release_are_read() -> None:
    envs = Environments("CartPole-v1", 1, seed=0)
    for _ in range(60):
        envs.step(np.array([0]))
    state = envs.state_dict()
    known = len(state.pop("lengths"))
    state.pop("total")
    again = Environments("CartPole-v1", 1, seed=0)
    again.load_state_dict(state)
    assert again.lengths == []
    for _ in range(30):
        again.step(np.array([0]))
    assert len(again.finished) == known + len(again.lengths)
    assert again.lengths
