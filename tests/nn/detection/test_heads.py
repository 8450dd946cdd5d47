"""Heads: the book's shapes and parameters, branches that share nothing, and unlikely starts."""

from __future__ import annotations

import pytest
import torch

from descend.nn.detection.heads import CoupledHead, DecoupledHead, DistanceHead, GridHead, flatten_levels
from tests.close import close


@pytest.mark.system("yolo-head-and-grid")
@pytest.mark.system("yolo-head-and-grid", "heads")
@pytest.mark.parametrize(("inputs", "grid", "count"), [(512, 13, 130815), (256, 26, 65535), (128, 52, 32895)])
def test_the_books_heads(inputs: int, grid: int, count: int) -> None:
    with torch.device("meta"):
        head = GridHead(inputs, 3, 80)
        assert head(torch.empty(1, inputs, grid, grid)).shape == (1, 255, grid, grid)
    assert sum(p.numel() for p in head.parameters()) == count


@pytest.mark.system("yolox-v7-v9")
@pytest.mark.system("yolox-v7-v9", "decoupled")
def test_branches_share_nothing_after_the_stem() -> None:
    torch.manual_seed(0)
    head = DecoupledHead(6, 8, 3)
    x = torch.randn(2, 6, 4, 4)
    named = dict(head.named_parameters())

    def used(y: torch.Tensor) -> set[str]:
        gradients = torch.autograd.grad(y.square().sum(), list(named.values()), retain_graph=True, allow_unused=True)
        return {name for name, g in zip(named, gradients, strict=True) if g is not None}

    found = head(x)
    classes, boxes = used(found.classes), used(found.boxes) | used(found.objectness)
    assert set(classes & boxes) == {name for name in named if name.startswith("stem.")}
    coupled = CoupledHead(6, 8, 3)(x)
    assert [tuple(part.shape) for part in coupled] == [tuple(part.shape) for part in found]


def test_classes_and_objects_begin_unlikely() -> None:
    torch.manual_seed(0)
    x = torch.zeros(1, 6, 2, 2)
    scores = GridHead(6, 2, 3)(x).unflatten(1, (2, 8))
    close(scores[:, :, 4].sigmoid(), torch.full((1, 2, 2, 2), 0.01))
    close(DecoupledHead(6, 8, 3).eval().classes(torch.zeros(1, 8, 1, 1)).sigmoid(), torch.full((1, 3, 1, 1), 0.01))


def test_levels_lie_end_to_end() -> None:
    maps = [torch.randn(2, 3, 4, 5), torch.randn(2, 3, 2, 2)]
    rows = flatten_levels(maps)
    assert rows.shape == (2, 24, 3)
    assert torch.equal(rows[1, 2 * 5 + 3], maps[0][1, :, 2, 3])
    assert torch.equal(rows[0, 20 + 1], maps[1][0, :, 0, 1])
    logits, sides = DistanceHead((3, 3), 4, 8, (6, 6))(maps)
    assert logits.shape == (2, 24, 4)
    assert sides.shape == (2, 24, 4, 8)
