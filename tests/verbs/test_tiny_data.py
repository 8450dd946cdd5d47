"""Data of almost nothing: one line before training, or a run that ends with 0 and has a report."""

from __future__ import annotations

from pathlib import Path

import pytest

from descend.report import page
from proofs.tiny import write_images
from proofs.verbs import call, list_missing

SMALL = ("--steps", "2", "--threads", "1", "--eval-every", "1", "--compile", "off", "--quiet")


def write_data(folder: Path, name: str) -> str:
    """A file or a folder with hardly anything in it; its path."""
    path = folder / name
    if name.startswith("images"):
        classes = ("a", "b") if name == "images-2x8" else ("a",)
        return str(write_images(path, classes, 8))
    path.write_text(FILES[name], encoding="utf-8")
    return str(path)


FILES = {
    "three.csv": "x,y\n1,2\n2,4\n3,6\n",
    "equal.csv": "x,y\n" + "".join(f"{i * i % 17},5.5\n" for i in range(40)),
    "one-class.csv": "x,kind\n" + "".join(f"{i},a\n" for i in range(40)),
    "few.txt": "the cat sat on the mat. " * 8,
    "four.tsv": "ein Hund\ta dog\neine Katze\ta cat\nein Haus\ta house\nein Baum\ta tree\n",
    "one-class.tsv": "".join(f"a film {i}\tgood\n" for i in range(30)),
    "few-tags.txt": "\n\n".join(f"a O\nfilm{i} B" for i in range(12)),
}
CASES = {
    "lenet-digits images-2x8": ["--batch", "4"],
    "vit-digits images-2x8": ["--batch", "4", "--model.depth", "1"],
    "lenet-digits images-1x8": ["--batch", "4"],
    "beit-digits images-2x8": ["--batch", "4", "--model.depth", "1"],
    "lenet-digits images-2x8 ": ["--batch", "4096"],
    "mlp-csv three.csv": ["--batch", "1"],
    "mlp-csv equal.csv": ["--batch", "8"],
    "mlp-csv one-class.csv": ["--batch", "8"],
    "mlp-csv equal.csv ": ["--batch", "4096"],
    "gpt2-chars few.txt": ["--batch", "2", "--model.context", "8", "--model.depth", "1"],
    "gru-chars few.txt": ["--batch", "2", "--model.context", "8"],
    "bert-pydoc few.txt": ["--batch", "2", "--model.context", "8", "--model.depth", "1"],
    "gpt2-chars few.txt ": ["--batch", "4096"],
    "skip-gram-pydoc few.txt": ["--batch", "4", "--data.least", "1"],
    "glove-pydoc few.txt": ["--batch", "4", "--data.least", "1"],
    "lstm-translate four.tsv": ["--batch", "2", "--data.valid", "0.5"],
    "t5-tasks four.tsv": ["--batch", "2", "--data.valid", "0.5"],
    "bert-classify one-class.tsv": ["--batch", "4", "--data.vocab", "300", "--model.depth", "1"],
    "lstm-sentiment one-class.tsv": ["--batch", "4"],
    "bert-tag few-tags.txt": ["--batch", "4", "--data.vocab", "300", "--model.depth", "1"],
}


@pytest.mark.parametrize("case", list(CASES))
def test_tiny_data_trains_or_is_refused_in_one_line(case: str, tmp_path: Path) -> None:
    recipe, file = case.split()
    out = tmp_path / "run"
    given = ["--data.path", write_data(tmp_path, file), *CASES[case], *SMALL]
    ended = call(["train", recipe, *given, "--out", str(out)])
    assert not ended.fault
    assert (out / "report.html").exists() == (ended.code == 0)
    if ended.code:
        assert not (out / "metrics.jsonl").exists()  # before training


def test_two_classes_of_eight_images_train_and_the_report_says_what_is_not_shown(tmp_path: Path) -> None:
    images = write_data(tmp_path, "images-2x8")
    ended = call(
        ["train", "lenet-digits", "--data.path", images, "--batch", "4", *SMALL, "--out", str(tmp_path / "run")]
    )
    assert (ended.code, ended.fault) == (0, "")
    assert list_missing(tmp_path / "run") == ["2 vectors are too few for a map; give at least 3"]


def test_a_report_that_cannot_be_written_does_not_hide_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(path: Path, text: str) -> Path:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(page, "write_page", fail)
    from descend.cli import main

    assert main(["train", "mlp-wine", *SMALL, "--out", str(tmp_path / "run")]) == 2
    out, err = capsys.readouterr()
    assert "best validation" in out
    assert str(tmp_path / "run") in out
    assert "the run is whole, but its report could not be written" in err
    assert "no space left" in err
    assert err.count("\n") == 1
