"""Scenes and their translations: only the object's colour differs, and it can be read off."""

from __future__ import annotations

import pytest
import torch

from descend.data.toys.recoloured import MAP, draw_translations, read_colour
from descend.data.toys.scenes import COLOURS
from tests.close import close


@pytest.mark.parametrize("source", ["labels", "recolour"])
def test_the_true_colour_is_read_from_the_target_and_not_from_the_source(source: str) -> None:
    found = draw_translations(150, 16, 3, source)  # type: ignore[arg-type]
    assert found.x.shape == found.y.shape == (150, 3, 16, 16)
    assert found.y.abs().max() <= 1
    assert (read_colour(found.y, found.mask) == found.colour).double().mean() > 0.99
    assert (read_colour(found.x, found.mask) == found.colour).double().mean() < 0.01
    assert {COLOURS[int(c)] for c in found.colour} == {after for _, after in MAP.values()}


def test_nothing_else_differs() -> None:
    found = draw_translations(50, 16, 0)
    changed = (found.x != found.y).any(dim=1)
    near = torch.nn.functional.max_pool2d(found.mask[:, None].float(), 3, 1, 1)[:, 0] > 0  # soft edges
    assert not (changed & ~near).any()
    assert changed[found.mask].double().mean() > 0.95


def test_seeds() -> None:
    a, b, c = draw_translations(5, 16, 0), draw_translations(5, 16, 0), draw_translations(5, 16, 1)
    close(a.x, b.x)
    assert not torch.equal(a.x, c.x)
