"""Pairs for verification: half the same, partners of the right kind, the same however an epoch is cut."""

from __future__ import annotations

import pytest
import torch

from descend.data.images.augment import Augment
from descend.data.images.labelled import Images, Preprocessing
from descend.data.images.verification import LoadPairs, choose_partners, pairs_once, shuffle_pairs
from descend.data.images.warp import Warp
from descend.data.streams.batches import join_batches

PREPARE = Preprocessing((1, 6, 6), (0.0,), (1.0,))


def images() -> Images:
    x = torch.rand(10, 1, 6, 6, generator=torch.Generator().manual_seed(0))
    return Images(x, torch.tensor([0, 1, 1, 2, 0, 1, 2, 2, 1, 0]), torch.arange(10))


@pytest.mark.system("deepface-verification")
def test_partners_are_of_the_same_class_or_of_another_and_all_are_drawn() -> None:
    y = images().y
    rows = torch.arange(10).repeat_interleave(2000)
    u = 2 * torch.rand(len(rows), 2, generator=torch.Generator().manual_seed(0)) - 1
    found = choose_partners(y, rows, u)
    same = u[:, 0] < 0
    assert (y[found[same]] == y[rows[same]]).all()
    assert (y[found[~same]] != y[rows[~same]]).all()
    assert (found != rows).all()
    assert len(torch.stack([rows, found]).unique(dim=1).T) == 90  # every other image
    alone = choose_partners(torch.tensor([0, 0, 0]), torch.arange(3), torch.ones(3, 2))
    assert (alone != torch.arange(3)).all()


def test_pairs_do_not_depend_on_how_a_step_is_split() -> None:
    load = LoadPairs(images().x, Augment((Warp(turn=20.0),)), PREPARE, images().y)
    whole, halves = shuffle_pairs(images(), load, 4, 1, (0, 1)), shuffle_pairs(images(), load, 2, 1, (0, 1))
    for _ in range(4):
        batch, other = next(whole), join_batches([next(halves), next(halves)])
        assert all(torch.equal(batch[name], other[name]) for name in batch)
    assert set(batch) == {"x1", "x2", "y1", "y2", "ids"}


def test_validation_pairs_are_unchanged_images() -> None:
    load = LoadPairs(images().x, Augment((Warp(turn=20.0),)), PREPARE, images().y)
    [batch] = pairs_once(images(), PREPARE, load, known=True)
    assert torch.equal(batch["x1"], images().x)
    assert batch["known"].all()
