from __future__ import annotations

import pytest
import torch
from torch import Tensor

from descend.errors import Mistake
from descend.ops.boxes import pairwise_iou
from descend.ops.nms import batched_nms, keep_best, nms, scan, suppress


def random_boxes(n: int, seed: int = 0, coarse: bool = False, size: float = 20) -> tuple[Tensor, Tensor]:
    """Boxes in an image of 100 pixels and scores; coarse ones have many ties, in IoU and in score."""
    random = torch.Generator().manual_seed(seed)
    corner, side = torch.rand(n, 2, generator=random) * 100, torch.rand(n, 2, generator=random) * size + 1
    boxes, scores = torch.cat([corner, corner + side], dim=-1), torch.rand(n, generator=random)
    return ((boxes / 10).round() * 10, (scores * 8).round() / 8) if coarse else (boxes, scores)


@pytest.mark.system("non-maximum-suppression")
@pytest.mark.system("non-maximum-suppression", "brute-force")
@pytest.mark.parametrize("tau", [0.0, 0.1, 0.5, 0.7, 1.0])
@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("n", [0, 1, 40, 700])
def test_fast_forms_keep_what_the_algorithm_keeps(tau: float, coarse: bool, n: int) -> None:
    boxes, scores = random_boxes(n, 3, coarse)
    expected = suppress(boxes, scores, tau)
    assert torch.equal(nms(boxes, scores, tau), expected)
    assert torch.equal(scan(boxes, scores, torch.zeros(n, dtype=torch.long), tau), expected)


@pytest.mark.system("non-maximum-suppression", "properties")
def test_what_is_kept() -> None:
    """No kept pair overlaps by more than τ; all that is gone overlaps a better box that is kept; twice is once."""
    boxes, scores = random_boxes(300, 1)
    kept = nms(boxes, scores, 0.3)
    assert (scores[kept].diff() <= 0).all()
    among = pairwise_iou(boxes[kept], boxes[kept]).fill_diagonal_(0)
    assert among.max() <= 0.3
    gone = torch.ones(300, dtype=torch.bool).scatter(0, kept, False)
    stronger = (pairwise_iou(boxes[gone], boxes[kept]) > 0.3) & (scores[kept] > scores[gone][:, None])
    assert stronger.any(dim=1).all()
    assert torch.equal(nms(boxes[kept], scores[kept], 0.3), torch.arange(len(kept)))


@pytest.mark.system("non-maximum-suppression", "per-class")
def test_groups_do_not_see_each_other() -> None:
    boxes, scores = random_boxes(400, 2)
    groups = torch.randint(0, 5, (400,), generator=torch.Generator().manual_seed(0)) * 7 - 3
    expected = torch.cat([(groups == g).nonzero()[:, 0][suppress(boxes[groups == g], scores[groups == g], 0.2)]
                          for g in groups.unique()])  # fmt: skip
    expected = expected[scores[expected].argsort(descending=True)]
    assert torch.equal(batched_nms(boxes, scores, groups, 0.2), expected)
    assert torch.equal(scan(boxes, scores, groups, 0.2), expected)


@pytest.mark.system("non-maximum-suppression", "per-class")
def test_keep_best_of_each_image() -> None:
    boxes, scores = (torch.stack(x) for x in zip(*(random_boxes(60, seed) for seed in range(4)), strict=True))
    classes = torch.randint(-1, 3, (4, 60), generator=torch.Generator().manual_seed(0))
    scores[2] = 0
    found = keep_best(boxes, scores, classes, 0.4, least=0.25, most=10)
    assert found.boxes.shape == (4, 10, 4)
    assert found.classes[2].tolist() == [-1] * 10
    assert found.scores[2].tolist() == [0] * 10
    for image in (0, 1, 3):
        fit = ((scores[image] >= 0.25) & (classes[image] >= 0)).nonzero()[:, 0]
        kept = fit[batched_nms(boxes[image, fit], scores[image, fit], classes[image, fit], 0.4)][:10]
        assert torch.equal(found.boxes[image], boxes[image, kept])
        assert torch.equal(found.classes[image], classes[image, kept])
        assert torch.equal(found.scores[image], scores[image, kept])
    none = keep_best(boxes, scores, classes, 0.4, least=2.0)
    assert none.boxes.shape == (4, 0, 4)


@pytest.mark.parametrize("tau", [-0.1, 1.5, float("nan")])
def test_a_threshold_that_is_none(tau: float) -> None:
    with pytest.raises(Mistake, match="from 0 to 1"):
        nms(*random_boxes(3), tau)


def test_shapes_that_do_not_fit() -> None:
    boxes, scores = random_boxes(3)
    with pytest.raises(Mistake, match="do not fit"):
        nms(boxes, scores[:2], 0.5)


@pytest.mark.system("non-maximum-suppression", "native")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_boxes_that_are_no_boxes(dtype: torch.dtype) -> None:
    """NaN, infinite, inverted and empty boxes overlap nothing, and do no harm; −0 is 0 in score and place."""
    boxes, scores = (x.to(dtype) for x in random_boxes(60, 5))
    boxes[3, 0], boxes[4, 3], boxes[5, 2] = torch.nan, torch.nan, torch.inf
    boxes[6] = boxes[6][[2, 3, 0, 1]]
    boxes[7, 2:] = boxes[7, :2]
    scores[8:12] = torch.tensor([0.0, -0.0, 0.0, -0.0])
    boxes[20:22, 0] = torch.tensor([-0.0, 0.0])
    for tau in (0.0, 0.4):
        expected = suppress(boxes, scores, tau)
        assert {3, 4, 6, 7} <= set(expected.tolist())
        assert torch.equal(nms(boxes, scores, tau), expected)
        assert torch.equal(scan(boxes, scores, torch.zeros(60, dtype=torch.long), tau), expected)


def test_far_and_tiny_boxes() -> None:
    """Coordinates of millions of pixels and boxes of thousandths: the window loses nothing."""
    boxes, scores = random_boxes(300, 6, size=40)
    for scale, shift in ((1e-3, 0.0), (1.0, 1e5), (1e4, -1e7)):
        moved = boxes * scale + shift
        expected = suppress(moved, scores, 0.3)
        assert torch.equal(nms(moved, scores, 0.3), expected)
        assert torch.equal(scan(moved, scores, torch.zeros(300, dtype=torch.long), 0.3), expected)


@pytest.mark.system("non-maximum-suppression", "strict")
def test_ties() -> None:
    """IoU = τ stays, a little less of τ does not let it; of equal scores the earlier box wins."""
    boxes = torch.tensor([[0.0, 0, 2, 1], [0, 0, 1, 1], [0, 0, 2, 1], [10, 0, 11, 1]])
    scores = torch.tensor([0.5, 0.5, 0.5, 0.5])
    for form in (nms, suppress):
        assert form(boxes, scores, 0.5).tolist() == [0, 1, 3]
        assert form(boxes, scores, 0.499).tolist() == [0, 3]
        assert form(boxes, torch.tensor([0.5, 0.5, 0.6, 0.7]), 0.5).tolist() == [3, 2, 1]
