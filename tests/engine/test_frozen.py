"""A teacher is part of the task and not of its checkpoints; a resume with another teacher is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from descend.contracts import Batch
from descend.engine.distributed import World
from descend.engine.fit import fit
from descend.engine.frozen import checksum
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.engine.progress import Quiet
from descend.engine.run import Run
from descend.engine.training import Training
from descend.errors import Mistake
from descend.models.deit import DeiTConfig, DeiTForImageClassificationWithTeacher
from descend.optim.rules import AdamW
from descend.optim.schedules import Constant
from descend.tasks.distill import Distill
from tests.engine.test_training import Repeat

BATCH: Batch = {"x": torch.randn(6, 1, 8, 8, generator=torch.Generator().manual_seed(0)), "y": torch.arange(6) % 2}


def parts(bias: float = 0.0) -> Parts:
    torch.manual_seed(0)
    student = DeiTForImageClassificationWithTeacher(DeiTConfig(1, 8, 4, 16, 1, 2, 32))
    teacher = nn.Sequential(nn.Flatten(), nn.Linear(64, 2))
    with torch.no_grad():
        teacher[1].bias.add_(bias)
    return Parts(Distill(student, teacher), student, Repeat(BATCH), [BATCH], {"model": AdamW(1e-3)})


def loop(steps: int) -> Loop:
    return Loop(steps=steps, eval_every=2, save_every=2, threads=1, precision="float32")


def test_checkpoints_do_not_hold_the_teacher_and_resume_to_the_same_bits(tmp_path: Path) -> None:
    for name, stops in (("whole", [4]), ("resumed", [2, 4])):
        Run.create(tmp_path / name, {"name": name})
        for i, steps in enumerate(stops):
            fit(parts(), loop(steps), Constant(), Run(tmp_path / name), Quiet(), resume=i > 0)
    whole, resumed = (tmp_path / name / "checkpoints/last/model.safetensors" for name in ("whole", "resumed"))
    assert whole.read_bytes() == resumed.read_bytes()
    state = Training(parts(), loop(2), Constant(), World()).state_dict()
    assert not [name for name in state["task"] if name.startswith("teacher.")]
    assert [name for name in state["task"] if name.startswith("model.")]
    assert state["frozen"] == {"teacher": checksum(parts().task.teacher)}


def test_another_teacher_is_refused(tmp_path: Path) -> None:
    Run.create(tmp_path / "run", {"name": "run"})
    fit(parts(), loop(2), Constant(), Run(tmp_path / "run"), Quiet())
    with pytest.raises(Mistake, match="teacher is not the one this run started with"):
        fit(parts(bias=1e-3), loop(4), Constant(), Run(tmp_path / "run"), Quiet(), resume=True)


def test_a_teacher_that_moves_is_found_out(tmp_path: Path) -> None:
    run, moving = Run.create(tmp_path / "run", {"name": "run"}), parts()
    teacher = moving.task.teacher

    def drift(*_: object) -> None:
        teacher[1].bias.data.add_(1e-3)

    teacher.register_forward_hook(drift)
    with pytest.raises(Mistake, match="teacher"):
        fit(moving, loop(2), Constant(), run, Quiet())


def test_the_checksum_sees_every_bit_name_and_shape() -> None:
    layer = nn.Linear(3, 2)
    before = checksum(layer)
    assert checksum(layer) == before
    with torch.no_grad():
        layer.weight.view(torch.int32)[0, 0] ^= 1
    assert checksum(layer) != before
    assert checksum(nn.Linear(2, 3)) != checksum(nn.Linear(3, 2))
