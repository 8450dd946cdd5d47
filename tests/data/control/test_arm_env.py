"""The arm in gymnasium: its checker passes, seeds decide, batches are the same world, and bad actions are named."""

from __future__ import annotations

import warnings

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env

from descend.data.control import ARM, SEEN_ARM
from descend.data.control.arm_env import PickPlace
from descend.data.control.arm_world import JOINTS, SPEED, ArmWorld
from descend.data.control.environments import Environments, make_env, spaces_of
from descend.data.control.scripted import demonstrate
from descend.errors import Mistake
from tests.close import close


@pytest.mark.system("pick-and-place", "environment")
@pytest.mark.parametrize("name", [ARM, SEEN_ARM])
def test_gymnasiums_checker_passes(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*render.*")
        check_env(gymnasium.make(name, disable_env_checker=True, render_mode="rgb_array").unwrapped)


@pytest.mark.system("pick-and-place", "environment")
def test_seed_and_actions_decide_an_episode() -> None:
    envs = [gymnasium.make(ARM) for _ in range(2)]
    first = [env.reset(seed=3)[0] for env in envs]
    assert np.array_equal(*first)
    assert not np.array_equal(first[0], envs[0].reset(seed=4)[0])
    envs[0].reset(seed=3)
    for action in np.random.default_rng(0).uniform(-1, 1, (10, 7)).astype(np.float32):
        a, b = (env.step(action) for env in envs)
        assert np.array_equal(a[0], b[0])
        assert a[1:] == b[1:]


def share(command: torch.Tensor, theta: torch.Tensor) -> np.ndarray:
    """The action that leads from angles to a command."""
    turn = (command[:JOINTS] - theta) / SPEED
    return torch.cat([turn, 2 * command[JOINTS:] - 1]).float().numpy()


@pytest.mark.system("pick-and-place", "environment")
def test_the_scripted_demonstration_ends_an_episode_with_reward() -> None:
    env = PickPlace()
    env.reset(seed=1)
    total, ended = 0.0, False
    for command in demonstrate(env.world, env.now)[0]:
        _, reward, ended, cut, info = env.step(share(command, env.now.theta[0]))
        total += reward
        assert not cut
        if ended:
            break
    assert ended
    assert info == {"success": True}
    assert total == 1.0


def test_without_success_an_episode_is_cut_off() -> None:
    env = PickPlace()
    env.reset(seed=0)
    steps = [env.step(np.zeros(7, np.float32)) for _ in range(env.world.longest)]
    assert not any(step[2] for step in steps)
    assert [step[3] for step in steps] == [False] * (env.world.longest - 1) + [True]


@pytest.mark.system("pick-and-place", "environment")
def test_a_batch_of_worlds_is_each_alone() -> None:
    world, random = ArmWorld(2, 2), torch.Generator().manual_seed(0)
    actions = 0.3 * torch.randn(6, 4, 7, generator=random).double()
    whole = world.reset([5, 6, 7, 8])
    alone = world.reset([7])
    for action in actions:
        whole, alone = world.step(whole, action), world.step(alone, action[2:3])
    close(whole.theta[2], alone.theta[0])
    close(world.state(whole)[2], world.state(alone)[0])
    assert whole.paint[2].tolist() == alone.paint[0].tolist()


def test_it_is_an_environment_like_any_other_here() -> None:
    spaces = spaces_of(ARM)
    assert (spaces.observations, spaces.actions, spaces.finite) == (10, 7, False)
    envs = Environments(ARM, 2, 0)
    rows = envs.step(np.zeros((2, 7), np.float32))
    assert rows["observation"].shape == (2, 10)
    with pytest.raises(Mistake, match="observations are Dict"):
        make_env(SEEN_ARM)


@pytest.mark.parametrize("action", [np.zeros(6), np.full(7, np.nan)])
def test_bad_actions_are_refused(action: np.ndarray) -> None:
    env = PickPlace()
    with pytest.raises(Mistake, match=r"reset\(\) first"):
        env.step(np.zeros(7))
    env.reset(seed=0)
    with pytest.raises(Mistake, match="an action is 7 finite numbers"):
        env.step(action)
    with pytest.raises(Mistake, match="renders rgb_array"):
        PickPlace(render_mode="human")
