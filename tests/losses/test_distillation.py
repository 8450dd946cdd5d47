"""The losses of a student with two heads."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.autograd import gradcheck

from descend.losses.distillation import hard_distillation, soft_distillation
from tests.close import close


def three() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    z = [torch.randn(5, 4, generator=random, dtype=torch.float64) for _ in range(3)]
    return z[0], z[1], z[2], torch.randint(4, (5,), generator=random)


@pytest.mark.system("deit")
@pytest.mark.system("deit", "hard")
def test_hard() -> None:
    of_class, of_teacher, teacher, y = three()
    expected = (F.cross_entropy(of_class, y) + F.cross_entropy(of_teacher, teacher.argmax(-1))) / 2
    close(hard_distillation(of_class, of_teacher, teacher, y).mean(), expected)


@pytest.mark.system("deit")
@pytest.mark.system("deit", "hard")
def test_a_teacher_that_says_the_labels() -> None:
    """Then the loss is the mean of two cross-entropies."""
    of_class, of_teacher, _, y = three()
    sure = F.one_hot(y, 4).double() * 9
    expected = (F.cross_entropy(of_class, y, reduction="none") + F.cross_entropy(of_teacher, y, reduction="none")) / 2
    close(hard_distillation(of_class, of_teacher, sure, y), expected)


@pytest.mark.system("deit")
@pytest.mark.system("deit", "soft")
def test_soft() -> None:
    of_class, of_teacher, teacher, y = three()
    told = F.kl_div((of_teacher / 2).log_softmax(-1), (teacher / 2).softmax(-1), reduction="batchmean")
    expected = 0.7 * F.cross_entropy(of_class, y) + 0.3 * 4 * told
    close(soft_distillation(of_class, of_teacher, teacher, y, tau=2.0, weight=0.3).mean(), expected)
    close(
        soft_distillation(of_class, teacher, teacher, y, weight=0.1),
        0.9 * F.cross_entropy(of_class, y, reduction="none"),
    )


@pytest.mark.system("deit")
def test_gradients_reach_the_student_only() -> None:
    of_class, of_teacher, teacher, y = (z.requires_grad_() if z.is_floating_point() else z for z in three())
    assert gradcheck(lambda a, b: soft_distillation(a, b, teacher.detach(), y), (of_class, of_teacher))
    assert gradcheck(lambda a, b: hard_distillation(a, b, teacher.detach(), y), (of_class, of_teacher))
    soft_distillation(of_class, of_teacher, teacher, y).sum().backward()
    assert teacher.grad is None
    with pytest.raises(ValueError, match="a temperature of 0"):
        soft_distillation(of_class, of_teacher, teacher, y, tau=0)
