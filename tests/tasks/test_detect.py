"""One task for all detectors: scores of the whole set in original pixels, whatever the batching; crowds are judged,
not learned."""

from __future__ import annotations

import pytest
import torch

from descend.contracts import Boxes, count_units
from descend.data.streams.batches import slice_examples
from descend.engine.evaluation import score_set
from descend.losses.detection.task_aligned import TaskAligned
from descend.metrics.detection.coco import judge_detections
from descend.metrics.detection.evidence import collect
from descend.tasks.detect import Detect, collect_evidence, read_truth
from tests.close import close
from tests.tasks.detection_cases import CLASSES, B, OneConvolution, held_out


def task() -> Detect:
    torch.manual_seed(0)
    return Detect(OneConvolution(), TaskAligned(), CLASSES)


@pytest.mark.parametrize("size", [1, 3, B])
def test_scores_do_not_depend_on_the_batching(size: int) -> None:
    batch, judge = held_out(), task()
    whole = score_set(judge, [batch])
    parts = [slice_examples(batch, start, start + size) for start in range(0, B, size)]
    found = score_set(judge, parts)
    assert found.keys() == whole.keys()
    for name, value in whole.items():
        assert found[name] == pytest.approx(value, rel=1e-5), name


def test_the_loss_of_a_set_is_that_of_its_objects() -> None:
    batch, judge = held_out(), task()
    [move] = list(judge.moves(batch))
    assert score_set(judge, [batch])["loss"] == pytest.approx(move.value().total().item(), rel=1e-5)
    close(move.units["*"], torch.tensor([0, 1, 2, 3] * 2).clamp_min(1).sum())


def test_perfect_answers_score_one_in_original_pixels() -> None:
    batch = held_out()
    there = batch["classes"] >= 0
    perfect = Boxes(batch["boxes"], batch["classes"], there.float())
    evidence = collect_evidence(perfect, batch)
    assert judge_detections(evidence, CLASSES).map == pytest.approx(1)
    for image, boxes, kept in zip(evidence, batch["true_boxes"], there, strict=True):
        close(image.boxes, boxes[kept])
    moved = perfect._replace(boxes=perfect.boxes + 6)
    assert judge_detections(collect_evidence(moved, batch), CLASSES).map < 0.2


def test_a_crowd_is_judged_and_not_learned() -> None:
    batch = held_out()
    crowded = batch | {"crowd": torch.ones_like(batch["crowd"])}
    assert (read_truth(crowded).classes == -1).all()
    assert int(count_units(read_truth(crowded))) == B
    nothing = Boxes(torch.zeros(B, 1, 4), torch.full((B, 1), -1), torch.zeros(B, 1))
    found = judge_detections(collect_evidence(nothing, crowded), CLASSES)
    assert found.map != found.map  # no object counts
    assert judge_detections(collect_evidence(nothing, batch), CLASSES).map == 0


def test_images_without_objects_are_learned_from() -> None:
    batch = held_out()
    batch["classes"] = torch.full_like(batch["classes"], -1)
    judge = task()
    [move] = list(judge.moves(batch))
    loss = move.value().total()
    loss.backward()
    assert loss > 0
    assert all(p.grad is not None and p.grad.isfinite().all() for p in judge.parameters())
    assert score_set(judge, [batch])["map"] == 0


def test_evidence_leaves_padding_out() -> None:
    batch = held_out()
    found = collect(Boxes(batch["boxes"], batch["classes"], torch.rand(B, 3)), read_truth(batch))
    assert [len(image.boxes) for image in found] == [0, 1, 2, 3] * 2
