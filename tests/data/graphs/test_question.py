"""What is kept beside a model of graphs: it comes back as it was, and refuses what does not fit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from descend.data.graphs.question import FILE, Question, measure_targets
from descend.errors import Mistake
from descend.files import read_json, write_json
from tests.close import close


def test_it_comes_back_as_it_was(tmp_path: Path) -> None:
    for question in (
        Question("nodes", True, ("a", "b")),
        Question("graphs", False, (), ("mass",), (2.0,), (0.5,), (3, 2, 0), "mass"),
        Question("links"),
    ):
        question.save(tmp_path)
        assert Question.read(tmp_path) == question


def test_targets_are_standardized_and_restored() -> None:
    y = torch.randn(50, 2, generator=torch.Generator().manual_seed(0)) * torch.tensor([3.0, 0.1]) + 7
    y = torch.cat([y, torch.full((50, 1), 4.0)], dim=1)
    question = Question("graphs", False, (), ("a", "b", "same"), *measure_targets(y))
    z = question.standardize(y)
    close(z[:, :2].double().mean(0) + 1, torch.ones(2, dtype=torch.float64), loosen=1e4)  # float32
    close(z[:, :2].std(0, correction=0), torch.ones(2))
    assert (z[:, 2] == 0).all()
    close(question.restore(z).float(), y)


def test_what_does_not_fit_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="edge attributes: 0, but the model was trained on 2"):
        Question("graphs", widths=(3, 2, 0)).check_widths((3, 0, 0), "new.jsonl")
    Question("nodes").save(tmp_path)
    write_json(tmp_path / FILE, {**read_json(tmp_path / FILE), "level": "worlds"})
    with pytest.raises(Mistake, match="level 'worlds' must be one of"):
        Question.read(tmp_path)
