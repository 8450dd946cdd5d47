"""Training episodes, and maps of the states of cart-pole."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from descend.views.control import CELLS, map_states, show_episodes, view_policy, view_values


def test_the_running_mean_looks_back() -> None:
    envs: Any = SimpleNamespace(finished=[(10 * i, float(i)) for i in range(30)])
    lines = show_episodes(envs).content["y"]
    assert lines["episode return"] == [float(i) for i in range(30)]
    mean = lines["mean of the last 20"]
    assert mean[:3] == [0.0, 0.5, 1.0]
    assert mean[-1] == sum(range(10, 30)) / 20


def test_maps_are_for_cart_pole_only() -> None:
    assert map_states("Pendulum-v1", lambda s: {"x": s[..., 0]}) == []
    angle, speed = map_states("CartPole-v1", lambda s: {"angle": s[..., 2], "speed": s[..., 3]})
    assert len(angle.content["values"]) == len(angle.content["rows"]) == CELLS
    assert angle.content["values"][0][0] == angle.content["values"][-1][0] < 0 < angle.content["values"][0][-1]
    assert speed.content["values"][0][0] == speed.content["values"][0][-1] < 0 < speed.content["values"][-1][0]


def test_views() -> None:
    best, gain = view_values(torch.tensor([[1.0, 3.0]])).values()
    assert (best.item(), gain.item()) == (3.0, 2.0)
    value, push = view_policy(torch.tensor([[0.0, 0.0]]), torch.tensor([7.0])).values()
    assert (value.item(), push.item()) == (7.0, 0.0)
