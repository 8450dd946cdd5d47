"""Films: boxes hold what is visible, identities stay, motion is steady."""

from __future__ import annotations

import pytest
import torch

from descend.data.streams.arrays import generator
from descend.data.toys.moving_scenes import fold, moving_scenes
from descend.errors import Mistake


def test_shapes_and_identities() -> None:
    films = moving_scenes(3, 12, 48, generator(0), late=0.5)
    assert films.x.shape == (3, 12, 3, 48, 48)
    assert films.boxes.shape == (3, 12, 4, 4)
    assert films.ids.shape == films.classes.shape == (3, 12, 4)
    seen = films.ids >= 0
    assert torch.equal(films.ids[seen], torch.arange(4).expand_as(films.ids)[seen])
    assert (films.boxes[~seen] == 0).all()
    assert ((films.boxes[seen][:, 2:] - films.boxes[seen][:, :2]) >= 1).all()
    assert not torch.equal(seen[:, 0], seen[:, -1])


def test_the_same_seed_makes_the_same_film() -> None:
    a, b = (moving_scenes(1, 4, 32, generator(7)) for _ in range(2))
    assert torch.equal(a.x, b.x)
    assert not torch.equal(a.x, moving_scenes(1, 4, 32, generator(8)).x)


def test_a_lone_object_moves_steadily_and_stays_inside() -> None:
    films = moving_scenes(8, 30, 64, generator(1), objects=(1, 1), speed=0.02)
    assert (films.ids == 0).all()
    middle = (films.boxes[..., :2] + films.boxes[..., 2:]) / 2
    step = middle[:, 1:, 0] - middle[:, :-1, 0]
    assert step.abs().max() <= 0.02 * 64 + 3  # what a turning shape adds to its box
    assert (films.boxes >= 0).all()
    assert (films.boxes <= 64).all()
    assert (middle[:, -1, 0] - middle[:, 0, 0]).norm(dim=1).mean() > 5


def test_the_ground_stays() -> None:
    films = moving_scenes(1, 6, 40, generator(2), objects=(1, 1), speed=0.0)
    assert (films.x[0, 1:] - films.x[0, :-1]).abs().mean() < 0.05


def test_reflection() -> None:
    p = torch.tensor([0.0, 3.0, 10.0, 12.0, 20.0, 23.0, -3.0])
    assert fold(p, torch.tensor(10.0)).tolist() == [0, 3, 10, 8, 0, 3, 3]


def test_impossible_films_are_refused() -> None:
    with pytest.raises(Mistake, match="at least 1"):
        moving_scenes(1, 0, 32, generator(0))
