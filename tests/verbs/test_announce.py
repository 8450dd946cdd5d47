"""What a run says when it starts, one line each."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from descend import cli
from descend.verbs.announce import announce, describe_data

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("facts", "line"),
    [
        ({"data": "pets", "training images": 1200, "classes": 3}, "data: pets; 1,200 training images; 3 classes"),
        ({"data": "a.tsv", "train texts": 9, "classes": "ham, spam"}, "data: a.tsv; 9 train texts; 2 classes"),
        ({"data": "a.csv", "training records": 9, "predicts": "price (a number)"}, "price (a number)"),
        ({"data": "book.txt", "training tokens": 90, "vocabulary": 7}, "data: book.txt; 90 training tokens"),
    ],
)
def test_the_data(facts: dict[str, object], line: str) -> None:
    (said,) = describe_data(facts)
    assert said.endswith(line)


def test_what_is_missing_is_not_told() -> None:
    assert announce({}, CPU, 2, "bfloat16") == ["device: cpu, 2 threads, bfloat16"]
    assert announce({}, torch.device("mps"), 2, "float32") == ["device: mps, float32"]


def test_leaks_left_out_columns_and_the_batch() -> None:
    facts = {
        "data": "a.csv",
        "left out": "id (one value a record)",
        "in training too": "3 of 9 test records",
        "batch": "4",
    }
    assert announce(facts, CPU, 1, "float32") == [
        "data: a.csv",
        "leak: 3 of 9 test records",
        "left out: id (one value a record)",
        "batch: 4",
        "device: cpu, 1 thread, float32",
    ]


def test_a_run_begins_with_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"{i},{i * i % 7},{'ab'[i % 2]}\n" for i in range(40))
    (tmp_path / "table.csv").write_text("x,z,kind\n" + rows, encoding="utf-8")
    flags = ["--data.path", str(tmp_path / "table.csv"), "--data.target", "kind", "--steps", "2", "--device", "cpu"]
    assert cli.main(["train", "mlp-csv", *flags, "--out", str(tmp_path / "run")]) == 0
    said = capsys.readouterr().err
    assert "training records; " in said
    assert "kind (2 classes)" in said
    assert "instead of" in said
    assert "device: cpu, 1 thread, float32\n" in said
