"""Tagged sentences: both formats, words in several tokens, and Python source tagged as `tokenize` does."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from descend.data.text.tagged import TaggedText, source_lines, tagged_arrays
from descend.errors import Mistake
from descend.text.inputs import Inputs
from descend.text.tokenizer import Tokenizer

CONLL = "-DOCSTART- -X- O\n\nPaul NNP B-PER\nruns VB O\n\n" + "Rome NNP B-LOC\nis VB O\nold JJ O\n\n" * 11


def test_both_formats_are_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text(CONLL)
    lines = ['{"tokens": ["Paul", "runs"], "tags": ["B-PER", "O"]}']
    lines += ['{"tokens": ["Rome", "is", "old"], "tags": ["B-LOC", "O", "O"]}'] * 11
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    one, two = (TaggedText(str(tmp_path / name)).read() for name in ("a.conll", "a.jsonl"))
    assert one.words == two.words
    assert one.tags == two.tags
    assert one.names == ("B-LOC", "B-PER", "O")
    assert int(one.ids[0]) == 3
    assert sorted(torch.cat(list(one.parts.values())).tolist()) == list(range(12))


@pytest.mark.system("encoder-fine-tuning-heads")
@pytest.mark.system("encoder-fine-tuning-heads", "tagging")
def test_only_the_first_token_of_a_word_counts() -> None:
    inputs = Inputs.extend(Tokenizer.characters("abc "), 8)
    b = tagged_arrays([["ab", "c"], ["abcabcabc"]], [[1, 2], [3]], inputs)
    a_, b_, c_, space = inputs.tokenizer.encode("abc ")
    assert b["x"][0].tolist() == [inputs.cls, a_, b_, space, c_, inputs.sep, inputs.pad, inputs.pad]
    assert b["at"].int().tolist() == [[0, 1, 0, 1, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0, 0]]
    assert b["y"][b["at"]].tolist() == [1, 2, 3]
    assert b["mask"].sum(1).tolist() == [6, 8]


def test_python_source() -> None:
    source = 'for x in range(3):  # for all\n    print("for x", 1.5)\n'
    found = list(source_lines(source))
    assert found[0] == [
        ("for", "KEYWORD"), ("x", "NAME"), ("in", "KEYWORD"), ("range", "NAME"), ("(", "OP"), ("3", "NUMBER"),
        (")", "OP"), (":", "OP"), ("#", "COMMENT"), ("for", "COMMENT"), ("all", "COMMENT"),
    ]  # fmt: skip
    assert [kind for _, kind in found[1]] == ["NAME", "OP", *["STRING"] * 4, "OP", *["NUMBER"] * 3, "OP"]
    assert list(source_lines('"""a\nfor b"""\n')) == [
        [('"', "STRING")] * 3 + [("a", "STRING")],
        [("for", "STRING"), ("b", "STRING")] + [('"', "STRING")] * 3,
    ]


def test_embedded_source() -> None:
    data = TaggedText().read()
    assert data.names == ("COMMENT", "KEYWORD", "NAME", "NUMBER", "OP", "STRING")
    assert len(data.words) > 2000
    assert max(map(len, data.words)) <= 32


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.conll", "Paul\n", "a.conll, line 1: one column"),
        ("a.jsonl", '{"tokens": ["a"], "tags": []}\n', "line 1: .* lists of the same length"),
        ("a.conll", "Paul O\n", "1 sentences; a tagger needs 10"),
    ],
)
def test_mistakes_name_the_line(name: str, content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(Mistake, match=message):
        TaggedText(str(tmp_path / name)).read()


def test_equal_sentences_are_in_one_part(tmp_path: Path) -> None:
    lines = [f'{{"tokens": ["word{i % 30}", "runs"], "tags": ["N", "V"]}}' for i in range(60)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    data = TaggedText(str(tmp_path / "a.jsonl")).read()
    part = {row: name for name, rows in data.parts.items() for row in rows.tolist()}
    assert all(part[i] == part[30 + i] for i in range(30))
    assert data.facts == {}
