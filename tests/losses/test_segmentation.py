"""Segmentation losses: torch's cross-entropy of flattened pixels, Dice by hand, gradients, pixels without a class."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from descend.errors import Mistake
from descend.losses.segmentation import VOID, dice_loss, mask_cross_entropy, pixel_cross_entropy
from tests.close import close

pytestmark = pytest.mark.system("semantic-segmentation-task")


def drawn(b: int = 3, k: int = 4, h: int = 5, w: int = 6) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(0)
    z = torch.randn(b, k, h, w, dtype=torch.float64, generator=random)
    return z, torch.randint(k, (b, h, w), generator=random)


@pytest.mark.system("semantic-segmentation-task", "loss")
def test_it_is_the_cross_entropy_of_the_flattened_pixels() -> None:
    z, y = drawn()
    flat = F.cross_entropy(z.movedim(1, -1).reshape(-1, 4), y.flatten())
    close(mask_cross_entropy(z, y).mean(), flat)
    close(mask_cross_entropy(z, y.to(torch.uint8)).mean(), flat)  # masks are kept as bytes
    close(pixel_cross_entropy(z, y), F.cross_entropy(z, y, reduction="none"))


@pytest.mark.system("semantic-segmentation-task", "loss")
def test_the_probabilities_of_a_pixel_add_up_to_one() -> None:
    """The loss of every class at one pixel: Σ_k exp(−ℓ_k) = 1."""
    z, y = drawn()
    each = torch.stack([pixel_cross_entropy(z, torch.full_like(y, k)) for k in range(4)])
    close((-each).exp().sum(0), torch.ones(3, 5, 6, dtype=torch.float64))


@pytest.mark.system("semantic-segmentation-task", "weights-and-void")
def test_class_weights_count_pixels() -> None:
    z, y = drawn()
    w = torch.tensor([0.5, 2.0, 1.0, 0.0], dtype=torch.float64)
    each = F.cross_entropy(z, y, reduction="none")
    close(mask_cross_entropy(z, y, w), torch.stack([(w[y[i]] * each[i]).mean() for i in range(3)]))


@pytest.mark.system("semantic-segmentation-task", "weights-and-void")
def test_pixels_without_a_class_do_not_count() -> None:
    z, y = drawn()
    y[0, :2], y[2] = VOID, VOID
    ours = mask_cross_entropy(z, y)
    close(ours[0], F.cross_entropy(z[:1, :, 2:], y[:1, 2:]))
    assert ours[2] == 0
    z = z.requires_grad_()
    for loss in (mask_cross_entropy, dice_loss):
        gradient = torch.autograd.grad(loss(z, y).sum(), z)[0]
        assert gradient.isfinite().all()
        assert gradient[0, :, :2].abs().sum() == gradient[2].abs().sum() == 0 < gradient[0, :, 2:].abs().sum()


@pytest.mark.system("semantic-segmentation-task", "dice")
def test_dice_of_certain_answers_is_the_overlap_of_sets() -> None:
    """Probabilities of 0 and 1 and no smoothing: D = 2 |A ∩ B| / (|A| + |B|) of each class."""
    _, y = drawn(k=2)
    _, answer = drawn(k=2, h=6)
    answer = answer[:, 1:]
    z = 2e3 * (answer[:, None] == torch.arange(2)[:, None, None]).double()
    sets = [[{*map(tuple, (m[i] == k).nonzero().tolist())} for k in range(2)] for m in (y, answer) for i in range(3)]
    expected = [
        1 - sum(2 * len(a & b) / (len(a) + len(b)) for a, b in zip(sets[i], sets[3 + i], strict=True)) / 2
        for i in range(3)
    ]
    close(dice_loss(z, y, smooth=0.0), torch.tensor(expected, dtype=torch.float64))
    right = 2e3 * (y[:, None] == torch.arange(2)[:, None, None]).double()
    assert dice_loss(right, y).abs().max() < 1e-12


def test_an_absent_class_costs_nothing_when_it_is_not_claimed() -> None:
    z, y = torch.zeros(1, 3, 4, 4), torch.zeros(1, 4, 4, dtype=torch.long)
    z[:, 0] = 100
    assert float(dice_loss(z, y)) == pytest.approx(0, abs=1e-6)


@pytest.mark.system("semantic-segmentation-task", "dice")
def test_dice_weighs_a_small_object_like_a_large_one() -> None:
    """Missing one object of 4 pixels among 400: the cross-entropy hardly minds, the Dice loss does."""
    y = torch.zeros(1, 20, 20, dtype=torch.long)
    y[0, :2, :2] = 1
    z = torch.zeros(1, 2, 20, 20)
    z[:, 0] = 5
    assert mask_cross_entropy(z, y) < 0.06
    assert dice_loss(z, y) > 0.3


def test_gradcheck() -> None:
    z, y = drawn(2, 3, 3, 2)
    y[0, 0, 0] = VOID
    w = torch.tensor([0.5, 2.0, 1.0], dtype=torch.float64)
    z = z.requires_grad_()
    assert torch.autograd.gradcheck(lambda z: mask_cross_entropy(z, y, w), z)
    assert torch.autograd.gradcheck(lambda z: dice_loss(z, y), z)


def test_wrong_masks_are_named() -> None:
    z, y = drawn()
    y[1, 2, 3] = 4
    with pytest.raises(Mistake, match="record 1, 2, 3: class 4 is not one of 0 to 3, nor 255"):
        pixel_cross_entropy(z, y)
    with pytest.raises(Mistake, match=r"need masks \(3, 5, 6\), not \(3, 6, 5\)"):
        dice_loss(z, y.mT)
