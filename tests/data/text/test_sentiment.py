"""Labelled texts for recurrent nets: files, folders, words, padding, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from descend.data.text.sentiment import Opinions, ShuffledTexts, generate_opinions
from descend.errors import Mistake


def test_generated_opinions_need_their_order() -> None:
    """Every opinion has a twin of the same words and the other label."""
    found = generate_opinions()
    by_words: dict[tuple[str, ...], set[str]] = {}
    for text, label in zip(found.texts, found.labels, strict=True):
        by_words.setdefault(tuple(sorted(text.split())), set()).add(label)
    assert all(labels == {"positive", "negative"} for labels in by_words.values())
    assert len(set(found.texts)) == len(found.texts)


def test_a_folder_keeps_its_parts(tmp_path: Path) -> None:
    for name, label in (("train", "0"), ("dev", "1"), ("test", "0")):
        (tmp_path / f"{name}.tsv").write_text(
            f"a good {name}\t{label}\nbad words here\t{1 - int(label)}\n", encoding="utf-8"
        )
    data = Opinions(path=str(tmp_path), rare=1)
    parts = data.read()
    assert parts["valid"].texts == ["a good dev", "bad words here"]
    tokenizer = data.learn_tokenizer(parts["train"])
    arrays = data.arrays(parts["test"], tokenizer, ["0", "1"])
    assert arrays["x"].shape == (2, 3)
    assert arrays["y"].tolist() == [0, 1]
    assert int(arrays["x"][0, 2]) == tokenizer.vocab - 1  # "test" was not in training: <unk>, the last one
    assert tokenizer.decode([0]) == "<pad>"
    (tmp_path / "test.tsv").unlink()
    with pytest.raises(Mistake, match=r"holds no test\.tsv"):
        data.read()


def test_rare_words_long_texts_and_trimmed_batches(tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    lines = [f'{{"text": "{"very " * (i % 5)}fine once{i}", "label": "{"ab"[i % 2]}"}}' for i in range(40)]
    path.write_text("\n".join(lines), encoding="utf-8")
    data = Opinions(path=str(path), longest=4)
    parts = data.read()
    tokenizer = data.learn_tokenizer(parts["train"])
    assert tokenizer.vocab == 4  # <pad>, very, fine, <unk>
    arrays = data.arrays(parts["train"], tokenizer, ["a", "b"])
    assert arrays["x"].shape[1] == 4
    stream = ShuffledTexts(arrays, 1, 1, seed=0)
    assert {next(stream)["x"].shape[1] for _ in range(20)} == {2, 3, 4}


def test_a_strange_label_is_named(tmp_path: Path) -> None:
    for name, label in (("train", "0"), ("dev", "1"), ("test", "7")):
        (tmp_path / f"{name}.tsv").write_text(f"good\t{label}\nbad\t{2}\n", encoding="utf-8")
    data = Opinions(path=str(tmp_path), rare=1)
    parts = data.read()
    with pytest.raises(Mistake, match="line 1: label '7' is not among the training labels 0, 2"):
        data.arrays(parts["test"], data.learn_tokenizer(parts["train"]), ["0", "2"])
