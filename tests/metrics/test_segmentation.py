"""Segmentation metrics against scikit-learn and scipy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.ndimage import maximum_filter, minimum_filter
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, jaccard_score
from torch import Tensor

from descend.errors import Mistake
from descend.metrics.segmentation import VOID, areas, confusions, dice, iou, mean_iou, near_boundary, pixel_accuracy
from tests.close import close

pytestmark = pytest.mark.system("semantic-segmentation-task")
K = 5


@pytest.fixture
def masks() -> tuple[Tensor, Tensor]:
    """Truth with pixels that do not count and without class 4, and an answer without class 3."""
    random = torch.Generator().manual_seed(0)
    y = torch.randint(4, (3, 9, 7), generator=random)
    answer = torch.where(torch.rand(3, 9, 7, generator=random) < 0.6, y, torch.randint(3, (3, 9, 7), generator=random))
    answer[answer == 3] = 2
    y[:, 0] = VOID
    return answer, y


@pytest.mark.system("semantic-segmentation-task", "scores")
def test_equal_to_scikit_learn(masks: tuple[Tensor, Tensor]) -> None:
    answer, y = masks
    each = confusions(answer, y, K)
    for i in range(3):
        keep = y[i] != VOID
        a, b = y[i][keep].numpy(), answer[i][keep].numpy()
        assert each[i].tolist() == confusion_matrix(a, b, labels=range(K)).tolist()
        close(pixel_accuracy(each[i]), torch.tensor(accuracy_score(a, b)))
        close(iou(each[i])[:4], jaccard_score(a, b, labels=range(4), average=None))
        close(dice(each[i])[:4], f1_score(a, b, labels=range(4), average=None))
    keep = y != VOID
    a, b = y[keep].numpy(), answer[keep].numpy()
    c = each.sum(0)
    assert torch.isnan(iou(c)[4])
    close(mean_iou(c), np.float32(jaccard_score(a, b, labels=range(4), average="macro")))
    close(iou(each), 1 / (2 / dice(each) - 1))


def test_the_mean_over_images_is_another_number() -> None:
    """A large object found and a small one missed, in two images: 0.98 of all pixels, half of the images."""
    y, answer = torch.zeros(2, 2, 50), torch.zeros(2, 2, 50)
    y[0] = answer[0] = 1
    y[1, :, :1] = 1
    each = confusions(answer.long(), y.long(), 2)
    close(iou(each.sum(0))[1], torch.tensor(100 / 102))
    assert iou(each)[:, 1].tolist() == [1, 0]


def test_areas_are_those_of_sets(masks: tuple[Tensor, Tensor]) -> None:
    answer, y = masks
    keep = y != VOID
    both, either = areas(confusions(answer, y, K).sum(0))
    for k in range(K):
        assert both[k] == ((answer == k) & (y == k)).sum()
        assert either[k] == (((answer == k) | (y == k)) & keep).sum()


def test_perfect_and_hopeless(masks: tuple[Tensor, Tensor]) -> None:
    _, y = masks
    right = torch.where(y == VOID, 0, y)
    assert mean_iou(confusions(right, y, K).sum(0)) == pixel_accuracy(confusions(right, y, K).sum(0)) == 1
    assert mean_iou(confusions((right + 1) % 4, y, K).sum(0)) == 0


@pytest.mark.parametrize("width", [1, 2])
def test_the_boundary_is_where_classes_meet(width: int) -> None:
    y = torch.randint(3, (2, 12, 10), generator=torch.Generator().manual_seed(1)).repeat_interleave(4, 1)
    size = (1, 2 * width + 1, 2 * width + 1)
    theirs = maximum_filter(y.numpy(), size, mode="nearest") != minimum_filter(y.numpy(), size, mode="nearest")
    ours = near_boundary(y, width)
    assert ours.tolist() == theirs.tolist()
    assert 0 < ours.float().mean() <= 1
    assert not near_boundary(torch.ones(1, 5, 5)).any()


def test_an_unknown_class_is_named() -> None:
    with pytest.raises(Mistake, match="class 3 is not one of 0 to 2"):
        confusions(torch.zeros(1, 2, 2), torch.full((1, 2, 2), 3), 3)
    with pytest.raises(Mistake, match="differ in shape"):
        confusions(torch.zeros(1, 2, 2), torch.zeros(1, 2, 3), 3)


def test_masks_without_any_class_count_nothing() -> None:
    nothing = torch.full((2, 3, 3), VOID)
    assert torch.equal(
        confusions(torch.zeros(2, 3, 3, dtype=torch.long), nothing, 4), torch.zeros(2, 4, 4, dtype=torch.long)
    )
    nothing[0, 0, 0], nothing[0, 0, 1] = 4, 0
    with pytest.raises(Mistake, match="class 4 is not one of 0 to 3"):
        confusions(torch.zeros(2, 3, 3), nothing, 4)
