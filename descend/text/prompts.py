"""Prompts: a task told to a language model in words, with as many examples as wanted. No weight changes.

    p(output | input, task)       the task is part of the text that the model continues (DLN: GPT-2, GPT-3)

    zero-shot     Translate to French: "Hello" ->                       MF 19.2, to the letter
    one-shot      one example before the query
    few-shot      Translate to French:
                  "Cat" -> "Chat"
                  "Dog" -> "Chien"
                  "Hello" ->
    as a list     translate to french, english text, french text        the form of GPT-2 (DLN)

    retrieved     Question: .. Context: Chunk 1: .. Chunk 2: .. Answer:         (DLN, retrieval-augmented generation)

The pages show every line as a paragraph of its own; here lines end with one line end, and an empty one stands before
each part of the retrieval prompt. Wording matters, so what a user wants otherwise is an argument.

Systems: in-context-learning, rag
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from descend.errors import Mistake


class Shot(NamedTuple):
    """An example in a prompt."""

    input: str
    output: str


def build_prompt(task: str, query: str, shots: Sequence[Shot] = ()) -> str:
    """The task, k examples and the query; without examples the instruction stands on the query's line."""
    if not task.strip():
        raise Mistake("a prompt needs a task, e.g. 'Translate to French'")
    if not shots:
        return f'{task}: "{query}" ->'
    lines = [f'"{shot.input}" -> "{shot.output}"' for shot in shots]
    return "\n".join([f"{task}:", *lines, f'"{query}" ->'])


def read_output(text: str) -> str:
    """What a model wrote after "->": the first line, without its quotes."""
    line = text.lstrip().partition("\n")[0].strip()
    return line[1:].partition('"')[0] if line.startswith('"') else line


def list_task(task: str, *parts: str) -> str:
    """GPT-2's form: (translate to french, english text, french text), (answer the question, document, question,
    answer). Leave out the last part and let the model write it."""
    return ", ".join((task, *parts))


def ground_prompt(question: str, chunks: Sequence[str], prefix: str = "") -> str:
    """The question, the retrieved chunks and where the answer begins; `prefix` may ask for a form, for sources, or to
    ignore what does not matter."""
    if not chunks:
        raise Mistake("a prompt with retrieved context needs at least one chunk")
    context = "\n".join(f"Chunk {i}: {chunk}" for i, chunk in enumerate(chunks, 1))
    body = f"Question:\n{question}\n\nContext:\n{context}\n\nAnswer:"
    return f"{prefix}\n\n{body}" if prefix else body
