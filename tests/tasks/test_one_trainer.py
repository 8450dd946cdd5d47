"""The training loop for detectors (MF-C.79): one task for grids, sets and vision transformers, without suppression."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from descend.contracts import Batch, count_units
from descend.data.streams.batches import slice_examples
from descend.losses.detection.set_prediction import SetPrediction
from descend.losses.detection.task_aligned import TaskAligned
from descend.losses.detection.varifocal import VarifocalSetPrediction
from descend.models import detr, make_model, rt_detr, vit_detector, yolo_v8
from descend.tasks.detect import Detect, read_truth
from tests.close import close
from tests.tasks.detection_cases import CLASSES, B, OneConvolution, objects

DETECTORS = {
    "yolo-v8": (yolo_v8.TINY, TaskAligned()),
    "detr": (detr.TINY, SetPrediction()),
    "rt-detr": (rt_detr.TINY, VarifocalSetPrediction(groups=0)),
    "vit": (vit_detector.TINY, TaskAligned()),
}


def make(name: str) -> tuple[Detect, Batch]:
    """A detector, and two images of 64 pixels with three objects."""
    torch.manual_seed(0)
    config, criterion = DETECTORS[name]
    random = torch.Generator().manual_seed(0)
    boxes = torch.tensor([[[4.0, 6, 30, 28], [30, 30, 60, 62]], [[10, 20, 50, 44], [0, 0, 0, 0]]])
    batch = {
        "x": torch.randn(2, 3, 64, 64, generator=random),
        "boxes": boxes,
        "classes": torch.tensor([[0, 1], [2, -1]]),
        "u": torch.rand(2, criterion.chance, generator=random),
    }
    return Detect(make_model(config), criterion, CLASSES), batch


@pytest.mark.system("detection-training-loop", "one-trainer")
@pytest.mark.parametrize("name", DETECTORS)
def test_the_loss_falls_for_each_of_them(name: str) -> None:
    task, batch = make(name)
    optimizer = torch.optim.AdamW(task.parameters(), lr=3e-3)
    losses = []
    for _ in range(12):
        [move] = list(task.moves(batch))
        optimizer.zero_grad()
        loss = move.value().total()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.9 * losses[0]


@pytest.mark.system("detection-training-loop")
@pytest.mark.system("detection-training-loop", "batch-average")
def test_the_loss_of_a_batch_is_the_mean_of_its_images() -> None:
    """Weighted by their objects: what MF writes as a mean over images, where each has as many."""
    torch.manual_seed(0)
    task, batch = Detect(OneConvolution(), TaskAligned(), CLASSES).double(), objects()
    batch = {key: x.double() if x.is_floating_point() else x for key, x in batch.items()}
    total, units = torch.zeros(()).double(), torch.zeros(()).double()
    for i in range(B):
        one = slice_examples(batch, i, i + 1)
        [move] = list(task.moves(one))
        n = count_units(read_truth(one))
        total, units = total + n * move.value().total(), units + n
    [move] = list(task.moves(batch))
    close(move.value().total(), total / units)


@pytest.mark.system("detection-training-loop", "assignment")
@pytest.mark.parametrize("name", DETECTORS)
def test_suppression_takes_no_part_in_training(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text lists it under the assignment of targets, a slip: `decode` has it, where the model needs any."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("suppressed")

    for module in (yolo_v8, vit_detector):
        monkeypatch.setattr(module, "keep_best", refuse)
    task, batch = make(name)
    [move] = list(task.moves(batch))
    move.value().total().backward()
    with torch.no_grad():
        found = task.model(batch["x"])
    if name in ("yolo-v8", "vit"):
        with pytest.raises(AssertionError, match="suppressed"):
            task.model.decode(found)
    else:
        assert task.model.decode(found).boxes.shape[0] == 2
