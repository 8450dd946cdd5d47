"""Prompts of 0, 1 and more examples are the books', to the letter."""

from __future__ import annotations

import pytest

from descend.errors import Mistake
from descend.text.prompts import Shot, build_prompt, ground_prompt, list_task, read_output

SLUG = "in-context-learning"
CAT, DOG = Shot("Cat", "Chat"), Shot("Dog", "Chien")


@pytest.mark.system(SLUG, "prompt-strings")
def test_the_books_prompts() -> None:
    task = "Translate to French"
    assert build_prompt(task, "Hello") == 'Translate to French: "Hello" ->'
    assert build_prompt(task, "Hello", [CAT]) == 'Translate to French:\n"Cat" -> "Chat"\n"Hello" ->'
    few = 'Translate to French:\n"Cat" -> "Chat"\n"Dog" -> "Chien"\n"Hello" ->'
    assert build_prompt(task, "Hello", [CAT, DOG]) == few
    with pytest.raises(Mistake, match="needs a task"):
        build_prompt(" ", "Hello")


@pytest.mark.system(SLUG, "prompt-strings")
def test_the_tasks_of_gpt2_are_lists() -> None:
    assert list_task("translate to french", "english text", "french text") == (
        "translate to french, english text, french text"
    )
    assert list_task("answer the question", "document", "question", "answer") == (
        "answer the question, document, question, answer"
    )


@pytest.mark.parametrize(
    ("written", "output"),
    [(' "Bonjour"\n"Bird" -> "Oiseau"', "Bonjour"), (" Bonjour\nmore", "Bonjour"), ('"open', "open"), ("", "")],
)
def test_the_output_is_the_first_line_without_quotes(written: str, output: str) -> None:
    assert read_output(written) == output


def test_retrieved_chunks_are_numbered() -> None:
    prompt = ground_prompt("Why?", ["One.", "Two."], "Cite your sources.")
    assert prompt == "Cite your sources.\n\nQuestion:\nWhy?\n\nContext:\nChunk 1: One.\nChunk 2: Two.\n\nAnswer:"
    with pytest.raises(Mistake, match="at least one chunk"):
        ground_prompt("Why?", [])
