"""Passages: as many words as asked for, every word once and in order, with the lines that they stand in."""

from __future__ import annotations

from pathlib import Path

import pytest

from descend.data.text.passages import cut_document, cut_file, cut_words, list_documents
from descend.errors import Mistake


def write_text(words: int) -> str:
    """Words in lines of 7 and paragraphs of 40."""
    parts = []
    for i in range(words):
        parts.append(f"w{i}" + ("\n\n" if i % 40 == 39 else "\n" if i % 7 == 6 else " "))
    return "".join(parts)


@pytest.mark.system("rag", "chunks")
@pytest.mark.parametrize(("least", "most"), [(200, 500), (1, 10), (30, 30), (5, 44)])
@pytest.mark.parametrize("words", [0, 1, 30, 1234])
def test_every_word_is_in_one_passage_of_the_length_that_was_asked_for(words: int, least: int, most: int) -> None:
    text = write_text(words)
    passages = list(cut_document(text, "a.md", 1, least, most))
    assert [word for p in passages for word in p.text.split()] == text.split()
    counts = [len(p.text.split()) for p in passages]
    assert all(least <= count <= most for count in counts[:-1])
    assert all(count <= most for count in counts[-1:])
    lines = text.split("\n")
    for p in passages:
        assert p.text in "\n".join(lines[p.line - 1 : p.last])
        assert p.text.split()[0] in lines[p.line - 1].split()
        assert p.text.split()[-1] in lines[p.last - 1].split()
        assert p.source == f"a.md:{p.line}"


@pytest.mark.system("rag", "chunks")
def test_passages_end_with_a_paragraph_else_a_line_where_they_can() -> None:
    text = write_text(400)
    ends = [text[:stop].split()[-1] for _, stop in cut_words(text, 30, 50)]
    assert ends[:3] == ["w39", "w79", "w119"]  # paragraphs of 40
    inside = text.replace("\n\n", " ")
    assert next(inside[:stop].split()[-1] for _, stop in cut_words(inside, 30, 36)) == "w34"  # a line of 7 ends there
    with pytest.raises(Mistake, match="passages of 9 to 3 words"):
        cut_words(text, 9, 3)


def test_records_are_documents_cited_by_their_line(tmp_path: Path) -> None:
    path = tmp_path / "facts.jsonl"
    path.write_text('{"text": "one two three four"}\n\n{"text": "five"}\n')
    found = cut_file(path, "facts.jsonl", 1, 3)
    assert [(p.text, p.line, p.last) for p in found] == [("one two three", 1, 1), ("four", 1, 1), ("five", 3, 3)]
    path.write_text('{"text": "one"}\n{"body": "two"}\n')
    with pytest.raises(Mistake, match='line 2: the record has no "text"'):
        cut_file(path, "facts.jsonl")


def test_documents_of_a_folder_have_names_below_it(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name in ("b.md", "deep/a.TXT", "image.png"):
        (tmp_path / name).write_text("x")
    assert list(list_documents(tmp_path)) == ["b.md", "deep/a.TXT"]
    assert list(list_documents(tmp_path / "b.md")) == ["b.md"]
    with pytest.raises(Mistake, match=r"is no document; it ends in \.txt"):
        list_documents(tmp_path / "image.png")
