"""A student with a distillation token learns from a frozen teacher."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from descend.losses.distillation import hard_distillation
from descend.models.deit import DeiTConfig, DeiTForImageClassificationWithTeacher
from descend.tasks.distill import Distill
from tests.close import close


def parts() -> tuple[Distill, dict[str, torch.Tensor]]:
    torch.manual_seed(0)
    student = DeiTForImageClassificationWithTeacher(DeiTConfig(1, 8, 4, 16, 1, 2, 32))
    teacher = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(144, 2))
    return Distill(student, teacher), {"x": torch.randn(12, 1, 8, 8), "y": torch.arange(12) % 2}


@pytest.mark.system("deit")
@pytest.mark.system("deit", "training")
def test_the_loss_and_a_teacher_that_stays() -> None:
    task, batch = parts()
    task.train()
    before = {k: v.clone() for k, v in task.teacher.state_dict().items()}
    rule = torch.optim.AdamW(task.model.parameters(), 3e-3)
    ((player, loss, _),) = task.moves(batch)
    told = task.teacher(batch["x"])
    close(loss(), hard_distillation(*task.model.both(batch["x"]), told, batch["y"]).mean())
    assert player == "model"
    for _ in range(60):
        for _, loss, _ in task.moves(batch):
            rule.zero_grad()
            loss().backward()
            rule.step()
    with torch.no_grad():
        of_class, of_teacher = task.eval().model.both(batch["x"])
    assert torch.equal(of_class.argmax(-1), batch["y"])
    assert torch.equal(of_teacher.argmax(-1), told.argmax(-1))  # not the labels: the teacher is untrained
    assert not torch.equal(told.argmax(-1), batch["y"])
    assert all(torch.equal(v, before[k]) for k, v in task.teacher.state_dict().items())
    assert set(task.score(batch)) == {"accuracy", "loss", "teacher", *task.evidence}
