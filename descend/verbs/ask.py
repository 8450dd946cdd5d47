"""descend ask: a question to an index of documents, answered with its sources."""

from __future__ import annotations

import json as json_module
import sys
from pathlib import Path
from typing import Any

from descend.inference.grounded import Grounded, answer
from descend.inference.passage_index import PassageIndex
from descend.inference.reranker import Reranker
from descend.inference.writer import Writer
from descend.own_code import use_code
from descend.sampling.filters import TokenSampler


def ask(
    index: str | Path,
    question: str,
    by: str | Path = "",
    top: int = 3,
    tokens: int = 100,
    temperature: float = 0.0,
    seed: int = 0,
    prefix: str = "",
    embedder: str = "",
    checkpoint: str | int = "best",
    rerank: str | Path = "",
) -> Grounded:
    """Answer a question from the passages of an index, with their sources.

    Args:
        index: what `descend index` made.
        question: the question.
        by: a run or model folder of a language model that writes the answer; empty: the best passages are the answer.
        top: passages to retrieve.
        tokens: how many tokens to write at most.
        temperature: 0 takes the most likely token each time.
        seed: of the random choices.
        prefix: an instruction before the prompt.
        embedder: where the index's encoder is now, if it was moved.
        checkpoint: of the language model: best, last or a step.
        rerank: a run of a cross-encoder, which reads the question with each of the candidates and ranks them anew.
    """
    writer = Writer.open(by, checkpoint) if str(by) else None
    opened, ranker = PassageIndex.open(index, embedder), Reranker.open(rerank) if str(rerank) else None
    return answer(opened, question, top, writer, tokens, TokenSampler(temperature), seed, prefix, ranker)


def tell_changes(index: PassageIndex) -> None:
    """Say which documents are not as the index has them."""
    if changed := index.find_changes():
        names = ", ".join(changed[:3]) + (", .." if len(changed) > 3 else "")
        said = f"{len(changed)} files changed since they were indexed ({names}); give descend index again"
        print(said, file=sys.stderr)


def list_sources(found: Grounded) -> list[dict[str, Any]]:
    """Where the answer comes from."""
    return [
        {"source": one.passage.source, "last": one.passage.last, "score": one.score, "text": one.passage.text}
        for one in found.sources
    ]


def command(
    index: str,
    question: str,
    /,
    *,
    by: str = "",
    top: int = 3,
    tokens: int = 100,
    temperature: float = 0.0,
    seed: int = 0,
    prefix: str = "",
    embedder: str = "",
    checkpoint: str = "best",
    rerank: str = "",
    code: str = "",
    json: bool = False,
) -> None:
    """Answer a question from the passages of an index, with file, line and score of each source.

    Args:
        index: what `descend index` made.
        question: the question.
        by: a run or model folder of a language model that writes the answer; empty: the best passages are the answer.
        top: passages to retrieve.
        tokens: how many tokens to write at most.
        temperature: 0 takes the most likely token each time.
        seed: of the random choices.
        prefix: an instruction before the prompt.
        embedder: where the index's encoder is now, if it was moved.
        checkpoint: of the language model: best, last or a step.
        rerank: a run of a cross-encoder, which reads the question with each of the candidates and ranks them anew.
        code: the file of a recipe or model of your own, where it is not found by its name.
        json: print answer and sources as JSON.

    Examples:
        descend ask docs-index "How is a run resumed?"
        descend ask docs-index "How is a run resumed?" --by runs/assistant --top 5
        descend ask docs-index "How is a run resumed?" --rerank runs/cross-encoder-pydoc/20260101-120000
        descend ask docs-index "How is a run resumed?" --json
    """
    use_code(code)
    writer, opened = Writer.open(by, checkpoint) if by else None, PassageIndex.open(index, embedder)
    ranker = Reranker.open(rerank) if rerank else None
    found = answer(opened, question, top, writer, tokens, TokenSampler(temperature), seed, prefix, ranker)
    tell_changes(opened)
    if found.note:
        print(found.note, file=sys.stderr)
    if json:
        answered = {"question": question, "answer": found.text, "sources": list_sources(found)}
        print(json_module.dumps(answered, ensure_ascii=False))
        return
    if by:
        print(found.text, end="\n\n")
    for number, one in enumerate(found.sources, 1):
        print(f"[{number}] {one.passage.source}  score {one.score:.3f}")
        if not by:
            print(one.passage.text, end="\n\n")
