"""Training episodes, and maps of the states of cart-pole."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from descend.data.control.environments import Arena, episode_seed
from descend.report.exhibits import make_section
from descend.views.control import (
    CELLS,
    FILMS,
    FRAMES,
    REPORTED,
    STILLS,
    map_states,
    show_episodes,
    show_lengths,
    show_policy,
    view_policy,
    view_values,
)
from tests.data import worlds

assert worlds  # registers its environments


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


def test_lengths_stand_with_the_episodes_that_they_are_of() -> None:
    """A run of the last release knows the lengths of its later episodes only."""
    envs: Any = SimpleNamespace(finished=[(10 * i, 1.0) for i in range(1, 6)], lengths=[7, 9])
    content = show_lengths(envs).content
    assert content["x"] == [40, 50]
    assert content["y"]["episode length"] == [7, 9]
    envs.lengths = []
    assert show_lengths(envs).content["x"] == []


def test_a_policy_is_filmed() -> None:
    lean = lambda seen: (seen[:, 2] > 0).long()
    film, strip = show_policy("CartPole-v1", lean)
    frames = film.content["frames"]
    assert len(frames) == len(film.content["captions"]) == FILMS
    assert frames.shape[1] <= FRAMES
    assert 0 <= frames.min() < frames.max() <= 1
    assert strip.content["rows"].shape[:2] == (1, STILLS)
    for exhibit in (film, strip):
        assert "could not be drawn" not in str(make_section(exhibit))
    seeds = [episode_seed(REPORTED, i) for i in range(FILMS)]
    played = Arena("CartPole-v1").play(lean, seeds)
    told = [f"return {r:.6g} in {int(n)} steps" for r, n in zip(*(part.tolist() for part in played), strict=True)]
    assert film.content["captions"] == told
    assert show_policy("Counter-v0", lambda seen: seen[:, 0].long()) == []
