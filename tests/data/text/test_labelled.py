"""Labelled texts: files in three formats, the embedded passages, and mistakes that name the line."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import torch

from descend.data.text.labelled import CHAPTERS, LabelledText, Trimmed, TrimmedInOrder, trim_padding
from descend.errors import Mistake
from descend.text.inputs import Inputs
from descend.text.tokenizer import Tokenizer

FORMATS = {
    "a.jsonl": "".join(f'{{"text": "word {i}", "label": {i % 2}}}\n' for i in range(20)),
    "a.tsv": "".join(f"word {i}\t{i % 2}\n" for i in range(20)),
    "header.tsv": "label\ttext\n" + "".join(f"{i % 2}\tword {i}\n" for i in range(20)),
    "a.csv": "text,label\n" + "".join(f'"word {i}",{i % 2}\n' for i in range(20)),
}


def inputs(longest: int = 16) -> Inputs:
    return Inputs.extend(Tokenizer.characters("word 0123456789"), longest)


@pytest.mark.parametrize("name", list(FORMATS))
def test_formats(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(FORMATS[name])
    data = LabelledText(str(tmp_path / name), valid=0.2, test=0.2).read()
    assert data.names == ("0", "1")
    assert data.texts == [f"word {i}" for i in range(20)]
    assert data.y.tolist() == [i % 2 for i in range(20)]
    assert {k: len(v) for k, v in data.parts.items()} == {"train": 12, "valid": 4, "test": 4}
    assert sorted(torch.cat(list(data.parts.values())).tolist()) == list(range(20))
    arrays = data.arrays("train", inputs())
    assert arrays["x"].shape == arrays["mask"].shape
    assert "segments" not in arrays
    assert int(arrays["ids"][0]) == int(data.parts["train"][0]) + (2 if name in ("header.tsv", "a.csv") else 1)


def test_pairs_have_segments(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text("".join(f'{{"text": "w{i}", "text_b": "o", "label": "{i % 2}"}}\n' for i in range(20)))
    arrays = LabelledText(str(path)).read().arrays("train", inputs())
    assert (arrays["segments"].sum(1) == 2).all()


def test_embedded_passages() -> None:
    data = LabelledText().read()
    counts = Counter(data.y.tolist())
    assert data.names == tuple(sorted(CHAPTERS.values()))
    assert len(data.texts) > 800
    assert min(counts.values()) > 20
    assert len(set(data.texts)) == len(data.texts)


def test_batches_are_as_long_as_their_longest_text(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("".join(f"{'o' * (1 + i % 9)}\t{i % 2}\n" for i in range(60)))
    arrays = LabelledText(str(path)).read().arrays("train", inputs())
    for batch in [next(Trimmed(arrays, 3, 3, seed=0)), *TrimmedInOrder(arrays, 4)]:
        assert batch["mask"][:, -1].any()
        assert batch["x"].shape == batch["mask"].shape
        assert batch["y"].shape == (len(batch["x"]),)
    one = {"x": torch.arange(6).view(2, 3), "mask": torch.tensor([[1, 0, 0], [1, 1, 0]]).bool(), "y": torch.ones(2, 3)}
    assert {k: v.shape for k, v in trim_padding(one).items()} == dict.fromkeys(one, (2, 2))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", '{"text": "x", "label": "a"}\n{"text": ', "a.jsonl, line 2 .*each line is one JSON object"),
        ("a.jsonl", '{"text": "x"}\n', "a.jsonl, line 1: no 'label'"),
        ("a.jsonl", "[1]\n", "line 1: a list, not a JSON object"),
        ("a.tsv", "x\ta\ny\n", "a.tsv, line 2: 1 fields, not 2"),
        ("a.tsv", "x\ta\n \tb\n", "line 2: the text is empty"),
        ("a.tsv", "x\ta\ny\ta\n", "1 different labels"),
        ("a.tsv", "", "is empty"),
        ("a.tsv", "x\ta\ny\tb\n", "2 texts leave none for valid"),
    ],
)
def test_mistakes_name_the_line(name: str, content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(Mistake, match=message):
        LabelledText(str(tmp_path / name)).read()


def test_a_missing_file_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="no such file"):
        LabelledText(str(tmp_path / "none.tsv")).read()
    (tmp_path / "b.tsv").write_bytes(b"a\tb\n\xff\t1\n")
    with pytest.raises(Mistake, match="line 2: byte 0xff is not UTF-8"):
        LabelledText(str(tmp_path / "b.tsv")).read()
