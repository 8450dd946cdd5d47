"""Pictures of environments: each state looks like itself, and what gives no pictures says so."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
import torch
from torch import Tensor

from descend.errors import Mistake
from descend.views.worlds import RED, Filming, choose_frames
from tests.data.worlds import Counter


class Pictured(Counter):
    """Renders an image of a size that it is told."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 7}  # noqa: RUF012

    def __init__(self, render_mode: str | None = None, missing: bool = False, channels: int = 3):
        self.render_mode, self.missing, self.channels = render_mode, missing, channels

    def render(self) -> np.ndarray:
        if self.missing:
            raise gymnasium.error.DependencyNotInstalled('crayons are not installed, run `pip install "crayons"`')
        return np.full((4, 6, self.channels), self.count, np.uint8)


gymnasium.register("Pictured-v0", Pictured, max_episode_steps=5)
gymnasium.register("Unpictured-v0", Pictured, kwargs={"missing": True})
gymnasium.register("Grey-v0", Pictured, kwargs={"channels": 1})


def first(observation: Tensor) -> Tensor:
    return torch.zeros(len(observation), dtype=torch.long)


def find_red(frame: np.ndarray) -> tuple[float, float]:
    """The middle of what is red: (row, column), as shares of the picture."""
    rows, columns = np.nonzero(np.abs(frame.astype(int) - RED).sum(-1) < 60)
    return rows.mean() / frame.shape[0], columns.mean() / frame.shape[1]


def test_a_cart_and_a_pole() -> None:
    filming = Filming("CartPole-v1")
    filming.world.reset(0)
    places = []
    for state in ((0, 0, 0, 0), (1.5, 0, 0, 0), (0, 0, 0.5, 0)):
        filming.world.env.unwrapped.state = state  # type: ignore[attr-defined]
        places.append(find_red(filming.look()))
    (_, middle), (_, right), (lower, leaning) = places
    assert middle == pytest.approx(0.5, abs=0.02)
    assert right == pytest.approx(0.5 + 1.5 / (2.2 * 2.4), abs=0.02)
    assert leaning > middle + 0.03
    assert lower > places[0][0]


def test_a_pendulum_hangs_and_stands() -> None:
    filming = Filming("Pendulum-v1")
    filming.world.reset(0)
    found = []
    for angle in (0.0, np.pi, np.pi / 2):
        filming.world.env.unwrapped.state = np.array([angle, 0.0])  # type: ignore[attr-defined]
        found.append(find_red(filming.look()))
    assert found[0][0] < 0.4 < 0.6 < found[1][0]
    assert found[2][1] < 0.4  # a quarter turn is to the left, as gymnasium draws it


def test_two_links_and_a_hill() -> None:
    acrobot = Filming("Acrobot-v1")
    acrobot.world.reset(0)
    acrobot.world.env.unwrapped.state = np.array([np.pi, 0.0, 0.0, 0.0])  # type: ignore[attr-defined]
    assert find_red(acrobot.look())[0] < 0.45  # both point up
    car = Filming("MountainCar-v0")
    car.world.reset(0)
    heights = []
    for x in (-0.5, 0.45):
        car.world.env.unwrapped.state = (x, 0.0)  # type: ignore[attr-defined]
        heights.append(find_red(car.look())[0])
    assert heights[1] < heights[0] - 0.3


@pytest.mark.parametrize(("name", "state", "place"), [("FrozenLake-v1", 6, (1, 2)), ("CliffWalking-v1", 14, (1, 2))])
def test_cells_of_a_grid(name: str, state: int, place: tuple[int, int]) -> None:
    filming = Filming(name)
    filming.world.reset(0)
    filming.world.env.unwrapped.s = state  # type: ignore[attr-defined]
    frame = filming.look()
    row, column = find_red(frame)
    rows, columns = (4, 4) if name.startswith("Frozen") else (4, 12)
    assert (int(row * rows), int(column * columns)) == place
    assert frame.shape == (40 * rows, 40 * columns, 3)


def test_an_episode_is_filmed_from_its_first_state_to_its_last() -> None:
    filming = Filming("Pictured-v0")
    filmed = filming.film(first, 0)
    assert filming.rate == 7
    assert [int(frame[0, 0, 0]) for frame in filmed.frames] == [0, 1, 2, 3, 4, 5]
    assert (filmed.steps, filmed.total, filmed.terminated) == (5, 15.0, False)
    assert Filming("CartPole-v1").film(first, 3).terminated


def test_frames_are_chosen_evenly() -> None:
    frames = [np.full((1, 1, 3), i) for i in range(11)]
    assert [int(f[0, 0, 0]) for f in choose_frames(frames, 3)] == [0, 5, 10]
    assert len(choose_frames(frames, 40)) == 11


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("Counter-v0", "Counter-v0 gives no pictures: it renders nothing; add the render mode rgb_array"),
        ("Unpictured-v0", 'Unpictured-v0 cannot be drawn: crayons are not installed, run `pip install "crayons"`'),
        ("Grey-v0", r"Grey-v0 gives no pictures: render\(\) returns \(4, 6, 1\), not \(h, w, 3\)"),
    ],
)
def test_what_gives_no_pictures_says_why(name: str, match: str) -> None:
    with pytest.raises(Mistake, match=match):
        Filming(name).film(first, 0)
