"""Selected queries: the best rows of each image, differentiable; boxes that move in logit space."""

from __future__ import annotations

import pytest
import torch

from descend.nn.detection.query_selection import grid_anchors, invert_sigmoid, refine, select_queries, take_rows
from tests.close import close


@pytest.mark.system("query-selection")
@pytest.mark.system("query-selection", "top-k")
def test_the_best_rows_of_each_image() -> None:
    random = torch.Generator().manual_seed(0)
    rows, scores = torch.randn(3, 40, 5, generator=random), torch.randn(3, 40, 4, generator=random)
    best = select_queries(scores, 7)
    chosen = take_rows(rows, best)
    for image in range(3):
        ranked = sorted(range(40), key=lambda i: -max(scores[image, i].tolist()))
        assert best[image].tolist() == ranked[:7]
        for place, row in enumerate(ranked[:7]):
            assert torch.equal(chosen[image, place], rows[image, row])
    with pytest.raises(ValueError, match="larger images or fewer queries"):
        select_queries(scores, 41)


@pytest.mark.system("query-selection", "gradient")
def test_the_gradient_reaches_the_selected_rows_only() -> None:
    rows = torch.randn(2, 9, 3, dtype=torch.float64, requires_grad=True)
    best = torch.tensor([[4, 0], [8, 1]])
    assert torch.autograd.gradcheck(lambda x: take_rows(x, best), rows)
    take_rows(rows, best).sum().backward()
    assert rows.grad is not None
    assert rows.grad.sum(-1).nonzero().tolist() == [[0, 0], [0, 4], [1, 1], [1, 8]]


@pytest.mark.system("query-selection", "logit-refinement")
def test_refinement() -> None:
    """σ(Δ + σ⁻¹(b)): nothing for Δ = 0, always within the image, and undone by −Δ."""
    random = torch.Generator().manual_seed(1)
    boxes = torch.rand(2, 5, 4, generator=random, dtype=torch.float64) * 0.98 + 0.01
    delta = torch.randn(2, 5, 4, generator=random, dtype=torch.float64) * 3
    close(refine(boxes, torch.zeros_like(delta)), boxes)
    moved = refine(boxes, delta)
    assert ((moved > 0) & (moved < 1)).all()
    close(moved, 1 / (1 + (1 - boxes) / boxes * (-delta).exp()))
    close(refine(moved, -delta), boxes, loosen=1e3)  # the logarithm near the ends is cut off at 1e-5
    close(invert_sigmoid(torch.tensor([0.0, 0.5, 1.0]))[[0, 2]], torch.tensor([-11.512925, 11.512925]))


@pytest.mark.system("query-selection")
def test_anchors() -> None:
    """The centre of each pixel, sides 0.05 and 0.1; those that touch the edge are not used."""
    anchors = grid_anchors([(200, 4), (2, 2)], torch.device("cpu"))
    boxes = anchors.logits.sigmoid().double()
    assert boxes.shape == (1, 804, 4)
    close(boxes[0, 4 * 7 + 2], torch.tensor([0.625, 7.5 / 200, 0.05, 0.05]))
    close(boxes[0, -1], torch.tensor([0.75, 0.75, 0.1, 0.1]))
    assert not anchors.used[0, :8].any()
    assert anchors.used[0, 8:12].all()
    assert torch.isfinite(anchors.logits).all()
