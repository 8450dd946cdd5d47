from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from descend.contracts import Batch, Move, Task
from descend.engine.evaluation import score_set
from tests.close import close


class Range(Task):
    """Scores the mean of x and, from the whole set, its range and the words that were seen."""

    evidence = ("x", "words")

    def __init__(self) -> None:
        super().__init__()
        self.model = nn.Dropout(0.5)

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("model", lambda: batch["x"].mean())

    def score(self, batch: Batch) -> dict[str, Any]:
        x = self.model(batch["x"])
        if bool((x < 0).any()):
            raise ValueError("negative")
        return {"mean": x, "x": x, "words": [f"w{int(v)}" for v in x]}

    def judge(self, means: dict[str, float], evidence: dict[str, Any]) -> dict[str, float]:
        x: Tensor = evidence["x"]
        return {"mean": means["mean"], "range": float(x.max() - x.min()), "words": len(set(evidence["words"]))}


X = torch.tensor([3.0, 1.0, 4.0, 1.0, 5.0, 9.0])


@pytest.mark.parametrize("cuts", [[6], [1, 5], [2, 2, 2], [5, 1]])
def test_evidence_is_judged_once_whatever_the_batches(cuts: list[int]) -> None:
    found = score_set(Range(), ({"x": part} for part in X.split(cuts)))
    assert found == {"mean": pytest.approx(23 / 6), "range": 8.0, "words": 5}


def test_no_batches_no_scores() -> None:
    assert score_set(Range(), ()) == {}


def test_the_mode_is_put_back_also_after_a_fault() -> None:
    task = Range().train()
    with pytest.raises(ValueError, match="negative"):
        score_set(task, [{"x": -X}])
    assert task.training
    score_set(task.eval(), [{"x": X}])
    assert not task.training


def test_the_mean_is_over_examples_not_batches() -> None:
    close(torch.tensor(score_set(Range(), [{"x": X[:1]}, {"x": X[1:]}])["mean"]), X.mean())
