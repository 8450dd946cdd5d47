"""Pairs of query and document: from docstrings, or from the user's file; parts that share no document."""

from __future__ import annotations

from pathlib import Path

import pytest

from descend.data.text import docstrings as source
from descend.data.text.docstrings import Match, QueryDocuments, keep_once, read_matches, split_docstrings
from descend.errors import Mistake

MODULE = '''"""Tools for words, all of them short.

They are kept here so that other modules can do without."""

def count(text, letter):
    """Return how often a letter stands in a text.

    The text is read once. Capital letters count as others."""
    return text.lower().count(letter)

class Short:
    """Too short."""
'''


def test_a_docstring_is_a_query_a_document_and_what_they_describe(tmp_path: Path) -> None:
    (tmp_path / "words.py").write_text(MODULE)
    (tmp_path / "broken.py").write_text("def (:")
    found = list(split_docstrings(tmp_path / "words.py"))
    assert [one.query for one in found] == [
        "Tools for words, all of them short.",
        "Return how often a letter stands in a text.",
    ]
    assert found[1].document == "The text is read once. Capital letters count as others."
    assert found[1].code == "count text letter return text.lower().count(letter)"
    assert found[0].code == ""
    assert list(split_docstrings(tmp_path / "broken.py")) == []


@pytest.mark.system("rag", "recall")
def test_parts_share_no_query_no_document_and_no_copy_and_hold_back_their_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every query has one right document, so that recall has a known answer."""
    many = [Match(f"query {i}", f"one of {i % 97} things and then more {i}", f"f{i}") for i in range(400)]
    monkeypatch.setattr(source, "described", lambda: tuple(many))
    monkeypatch.setattr(source, "SHORTEST", (1, 1))
    data = QueryDocuments(valid=0.2, test=0.2)
    parts = data.read()
    assert sum(map(len, parts.values())) == 400
    for field in ("query", "document", "beginning"):
        values = [{getattr(one, field) for one in parts[part]} for part in ("train", "valid", "test")]
        assert not values[0] & values[1]
        assert not values[0] & values[2]
        assert not values[1] & values[2]
    held = {one.query for part in ("valid", "test") for one in parts[part]}
    more = data.more(parts)
    assert len(more) == len(parts["train"])
    assert not held & {one.query for one in more}
    assert QueryDocuments(also="").more(parts) == []


def test_what_comes_twice_counts_once() -> None:
    pairs = [Match("a", "x"), Match("a", "y"), Match("b", "x"), Match("c", "z")]
    assert keep_once(iter(pairs)) == [Match("a", "x"), Match("c", "z")]


def test_files_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("where is it?\tit is here\nand that?\tover there\n")
    (tmp_path / "pairs.jsonl").write_text('{"query": "where is it?", "document": "it is here"}\n')
    assert read_matches(tmp_path / "pairs.tsv")[1] == Match("and that?", "over there")
    assert read_matches(tmp_path / "pairs.jsonl") == [Match("where is it?", "it is here")]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("p.tsv", "a\tb\nonly one\n", "line 2: 1 fields instead of 2; write query TAB document"),
        ("p.tsv", "a\t \n", "line 1: query or document is empty"),
        ("p.jsonl", '{"query": "a", "document": "b"}\n{"query": "a"}\n', 'line 2: each record has the texts "query"'),
        ("p.csv", "a,b\n", r"are read from \.tsv or \.jsonl"),
    ],
)
def test_a_bad_record_is_named(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(Mistake, match=said):
        read_matches(tmp_path / name)


def test_too_few_pairs(tmp_path: Path) -> None:
    (tmp_path / "p.tsv").write_text("a\tb\nc\td\n")
    with pytest.raises(Mistake, match=r"2 pairs leave too few for \w+; give more pairs"):
        QueryDocuments(str(tmp_path / "p.tsv")).read()
    with pytest.raises(Mistake, match="leave nothing to train on"):
        QueryDocuments(str(tmp_path / "p.tsv"), valid=0.5, test=0.5).read()
