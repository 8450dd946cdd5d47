"""Pairs of texts: files and folders, generated tasks, labels as words, batches cut to their longest."""

from __future__ import annotations

import datetime
import gzip
import json
import re
from pathlib import Path

import pytest
import torch

from descend.data.text.text_to_text import Labels, PairsInOrder, ShuffledPairs, TextPairs, specials, trim_pairs
from descend.data.toys.number_words import number_words, pairs
from descend.errors import Mistake

SLUG = "text-to-text-framework"


def test_numbers_in_words() -> None:
    known = {0: "zero", 13: "thirteen", 40: "forty", 99: "ninety-nine", 100: "one hundred",
             342: "three hundred forty-two", 1005: "one thousand five", 21070: "twenty-one thousand seventy",
             }  # fmt: skip
    assert {n: number_words(n) for n in known} == known
    assert len({number_words(n) for n in range(10000)}) == 10000


@pytest.mark.system("text-to-text-framework", "tasks")
@pytest.mark.system(SLUG)
def test_generated_tasks_are_right() -> None:
    found = pairs(("words", "date", "add"), 600)
    assert found == pairs(("words", "date", "add"), 600)
    assert len({x for x, _ in found}) == 600
    for source, target in found:
        task, _, text = source.partition(": ")
        if task == "add":
            a, b = map(int, text.split(" + "))
            assert int(target) == a + b
        elif task == "words":
            assert target == number_words(int(text))
        else:
            forms = {"%d %B %Y": r"\d+ \w+", "%B %d, %Y": r"\w+ \d+,", "%d.%m.%Y": r"\d+\.", "%m/%d/%Y": r"\d+/"}
            form = next(form for form, pattern in forms.items() if re.match(pattern, text))
            assert datetime.datetime.strptime(text, form).date().isoformat() == target


@pytest.mark.system("text-to-text-framework", "labels")
@pytest.mark.system(SLUG)
def test_label_words_round_trip() -> None:
    labels = Labels(["negative", "positive"])
    assert labels.pair("sentiment", "This movie is great!", 1) == ("sentiment: This movie is great!", "positive")
    assert [labels.parse(labels.words[i]) for i in range(2)] == [0, 1]
    assert labels.parse(" Positive ") == 1
    assert labels.parse("great") is None
    with pytest.raises(Mistake, match="repeat"):
        Labels(["yes", "Yes "])


def test_files(tmp_path: Path) -> None:
    wanted = [("a: ü", "1"), ("b: x", "2"), ("c", "3")]
    tsv, jsonl = tmp_path / "p.tsv", tmp_path / "p.jsonl"
    tsv.write_text("".join(f"{x}\t{y}\n" for x, y in wanted), encoding="utf-8")
    jsonl.write_text("".join(json.dumps({"source": x, "target": y}) + "\n" for x, y in wanted))
    for path in (tsv, jsonl):
        split = TextPairs(str(path)).read()
        assert split.train + split.valid == wanted
    tsv.write_text("one\ttwo\nthree\n")
    with pytest.raises(Mistake, match=r"p.tsv, line 2: 1 fields instead of 2"):
        TextPairs(str(tsv)).read()
    jsonl.write_text('{"source": "x"}\n')
    with pytest.raises(Mistake, match="line 1: not an object with"):
        TextPairs(str(jsonl)).read()
    with pytest.raises(Mistake, match="no such file or folder"):
        TextPairs(str(tmp_path / "none")).read()
    with pytest.raises(Mistake, match=r"choose words, date, add. Did you mean 'date'"):
        TextPairs(tasks=("dates",)).read()


def test_a_folder_of_parallel_text(tmp_path: Path) -> None:
    for name, text in {"train.de": "ein\nzwei\n\ndrei\n", "train.en": "one\ntwo\nx\nthree\n", "val.de": "vier\n",
                       "val.en": "four\n"}.items():  # fmt: skip
        (tmp_path / name).write_text(text)
    for name, word in (("test_2016.de.gz", "fünf\n"), ("test_2016.en.gz", "five\n")):
        (tmp_path / name).write_bytes(gzip.compress(word.encode()))
    split = TextPairs(str(tmp_path)).read()
    assert split.train == [("ein", "one"), ("zwei", "two"), ("drei", "three")]
    assert (split.valid, split.test) == ([("vier", "four")], [("fünf", "five")])
    assert TextPairs(str(tmp_path), source="en", target="de").read().valid == [("four", "vier")]
    (tmp_path / "val.en").write_text("four\nfive\n")
    with pytest.raises(Mistake, match=r"val.de has 1 lines, val.en 2"):
        TextPairs(str(tmp_path)).read()
    with pytest.raises(Mistake, match=r"no train.fr"):
        TextPairs(str(tmp_path), source="fr").read()


@pytest.mark.parametrize(("tokenizer", "longest"), [("characters", 30), ("bpe", 16)])
def test_arrays_and_streams(tokenizer: str, longest: int) -> None:
    data = TextPairs(tokenizer=tokenizer, vocab=300, count=400, longest=longest)
    split = data.read()
    learned = data.learn_tokenizer(split.train)
    pad, end = specials(learned)
    assert pad == learned.vocab - 1
    arrays = data.arrays(split.train, learned, "training")
    assert 0 < len(arrays["ids"]) < len(split.train)  # some are longer
    row = next(ShuffledPairs(arrays, pad, 8, 8, seed=0))
    assert row["x"].shape[1] < arrays["x"].shape[1] or row["y"].shape[1] < arrays["y"].shape[1]
    for x, y, i in zip(row["x"].tolist(), row["y"].tolist(), row["ids"].tolist(), strict=True):
        texts = [learned.decode(side[: side.index(end)]) for side in (x, y)]
        assert tuple(texts) == split.train[i]
        assert set(y[y.index(end) + 1 :]) <= {pad}
    seen = torch.cat([batch["ids"] for batch in PairsInOrder(arrays, pad, 16)])
    assert seen.sort().values.tolist() == arrays["ids"].tolist()
    assert trim_pairs({"x": torch.tensor([[3, pad]]), "y": torch.tensor([[3, 4]])}, pad)["x"].tolist() == [[3]]
    with pytest.raises(Mistake, match="none of the 380 training pairs"):
        TextPairs(longest=1).arrays(split.train, learned, "training")


def test_sources_in_two_parts_are_counted(tmp_path: Path) -> None:
    rows = [f"source {i}\ttarget {i}" for i in range(18)] + ["Source  3\tanother", "source 99\tlast"]
    (tmp_path / "a.tsv").write_text("\n".join(rows))
    assert TextPairs(str(tmp_path / "a.tsv"), valid=0.1).read().describe_leaks() == {
        "in training too": "1 of 2 valid records"
    }
    (tmp_path / "b.tsv").write_text("\n".join(rows[:18]))
    assert TextPairs(str(tmp_path / "b.tsv"), valid=0.1).read().describe_leaks() == {}
