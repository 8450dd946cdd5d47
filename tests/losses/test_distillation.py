"""The losses of a student with two heads."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.autograd import gradcheck

from descend.losses.distillation import hard_distillation, soft_distillation, softened_divergence, taught_loss
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


KD = "knowledge-distillation"


@pytest.mark.system(KD, "as-printed")
@pytest.mark.system(KD)
def test_as_printed() -> None:
    """α L + (1 − α) KL, torch's divergence; 0 where both agree; gradient (1 − α)(p_s − p_t) and the task's."""
    student, teacher, _, y = three()
    student.requires_grad_()
    told = F.kl_div(student.log_softmax(-1), teacher.softmax(-1), reduction="none").sum(-1)
    labels = F.cross_entropy(student, y, reduction="none")
    close(taught_loss(labels, student, teacher, 0.3), 0.3 * labels + 0.7 * told)
    assert (softened_divergence(teacher, teacher).abs() < 1e-12).all()
    (found,) = torch.autograd.grad(taught_loss(labels, student, teacher, 0.3).sum(), student)
    p, hot = student.softmax(-1), F.one_hot(y, 4)
    close(found, 0.7 * (p - teacher.softmax(-1)) + 0.3 * (p - hot))


@pytest.mark.system(KD, "temperature")
@pytest.mark.system(KD)
def test_with_a_temperature() -> None:
    """τ² KL of both softened; its gradient does not fade with τ; a sure teacher at τ = 1 is the label."""
    student, teacher, _, y = three()
    student.requires_grad_()
    told = F.kl_div((student / 5).log_softmax(-1), (teacher / 5).softmax(-1), reduction="none").sum(-1)
    close(softened_divergence(student, teacher, 5.0), 25 * told)
    lengths = [
        float(torch.autograd.grad(softened_divergence(student, teacher, tau).sum(), student)[0].norm())
        for tau in (1.0, 20.0, 100.0)
    ]
    assert 0.1 < lengths[1] / lengths[0] < 10
    assert abs(lengths[2] / lengths[1] - 1) < 0.2
    sure = F.one_hot(y, 4).double() * 1e4
    close(taught_loss(torch.zeros(5), student, sure, 0.0), F.cross_entropy(student, y, reduction="none"))
    with pytest.raises(ValueError, match="a temperature of 0"):
        softened_divergence(student, teacher, 0)
