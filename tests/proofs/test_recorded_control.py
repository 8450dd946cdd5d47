"""What trained policies reached (RESULTS.json): means over 100 test episodes, on every seed."""

from __future__ import annotations

import pytest

from tests.proofs.test_recorded_results import read


@pytest.mark.parametrize(
    "way",
    [
        pytest.param("reinforce", marks=pytest.mark.system("reinforce", "control")),
        pytest.param("a2c", marks=pytest.mark.system("actor-critic", "control")),
        pytest.param("trpo", marks=pytest.mark.system("trpo", "control")),
        "ppo",
        "dqn",
    ],
)
def test_a_pole_is_balanced(way: str) -> None:
    """CartPole-v1 counts as solved at 475 of 500; TRPO and PPO are recorded side by side."""
    assert min(read(f"{way}-cartpole return")) >= 475


@pytest.mark.parametrize(("recipe", "bar"), [("dqn-acrobot", -92), ("dqn-mountain-car", -195), ("ppo-pendulum", -200)])
def test_what_swings_comes_up(recipe: str, bar: float) -> None:
    assert min(read(f"{recipe} return")) >= bar
