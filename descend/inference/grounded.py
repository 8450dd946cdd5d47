"""Answers that rest on documents: retrieve passages, write them into the prompt, let a language model go on from there.

    (1) passages and their vectors         `descend.inference.passage_index`
    (2) the k passages nearest to the question          a cross-encoder may rank more of them anew
    (3) "Question: .. Context: Chunk 1: .. Answer:"        `descend.text.prompts`, as DLN prints it
    (4) y ~ p(· | prompt)

Without a language model the best passages are the answer. Either way every answer names its sources. A prompt that the
model's context cannot hold is made from fewer passages, then from the beginning of the best one, and that is said.
`marginal` weighs one given answer by every passage: p(y | x) = Σ_z p(z | x) p(y | x, z).

Systems: rag
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.inference.passage_index import Found, PassageIndex
from descend.inference.reranker import Reranker
from descend.inference.writer import Writer
from descend.ops.marginal import marginal_sequence, marginal_token
from descend.sampling.filters import GREEDY, TokenSampler
from descend.sampling.sequence import token_log_probabilities
from descend.text.prompts import ground_prompt


@dataclass(frozen=True)
class Grounded:
    """An answer and where it comes from."""

    question: str
    text: str
    """What the language model wrote; the best passage where there is none."""
    sources: list[Found]
    prompt: str = ""
    note: str = ""


def answer(
    index: PassageIndex,
    question: str,
    top: int = 3,
    writer: Writer | None = None,
    tokens: int = 100,
    sampler: TokenSampler = GREEDY,
    seed: int = 0,
    prefix: str = "",
    ranker: Reranker | None = None,
) -> Grounded:
    """Answer a question from the passages of an index; with a ranker, from the best of more candidates."""
    found = index.search(question, top if ranker is None else max(top, ranker.candidates))
    if ranker is not None:
        found = ranker.rank(question, found)[:top]
    if writer is None:
        return Grounded(question, found[0].passage.text, found)
    prompt, used, note = fit_prompt(writer, question, found, tokens, prefix)
    text = "".join(writer.write(prompt, tokens, sampler, seed)).strip()
    return Grounded(question, text, used, prompt, note)


def fit_prompt(
    writer: Writer, question: str, found: Sequence[Found], tokens: int, prefix: str = ""
) -> tuple[str, list[Found], str]:
    """The prompt that leaves room for `tokens` new ones, the passages in it, and what was left out for that."""
    room = writer.begin("x").decoder.context - tokens if writer.continues else 2**31
    fits = lambda prompt: len(writer.tokenizer.encode(prompt)) <= room
    for k in range(len(found), 0, -1):
        prompt = ground_prompt(question, [one.passage.text for one in found[:k]], prefix)
        if fits(prompt):
            left = len(found) - k
            return prompt, list(found[:k]), f"{left} passages left out: the model's context is full" if left else ""
    words = found[0].passage.text.split()
    low, high = 0, len(words)
    while low < high - 1:  # the most words that fit
        middle = (low + high) // 2
        fit = fits(ground_prompt(question, [" ".join(words[:middle])], prefix))
        low, high = (middle, high) if fit else (low, middle)
    if not low:
        raise Mistake(
            f"the question leaves no room for a passage: the model's context less {tokens} new tokens is {room}; "
            f"ask a shorter question, or lower --tokens"
        )
    prompt = ground_prompt(question, [" ".join(words[:low])], prefix)
    return prompt, list(found[:1]), f"only the first {low} words of the best passage fit into the model's context"


@torch.no_grad()
def marginal(writer: Writer, question: str, given: str, found: Sequence[Found]) -> dict[str, float]:
    """log p of a given answer by the passages that were found, one for the whole answer or one for each token."""
    y = writer.tokenizer.encode(given)
    if not y:
        raise Mistake("the answer is empty; there is nothing to weigh")
    rows = [score_tokens(writer, ground_prompt(question, [one.passage.text]), y) for one in found]
    scores = torch.tensor([[one.score for one in found]], dtype=torch.float64)
    log_p = torch.stack(rows)[None].double()
    return {"sequence": float(marginal_sequence(scores, log_p)), "token": float(marginal_token(scores, log_p))}


def score_tokens(writer: Writer, prompt: str, y: Sequence[int]) -> Tensor:
    """log p(y_i | prompt, y_<i) (t), by one pass over both."""
    ids = writer.tokenizer.encode(prompt)
    x = torch.tensor([[*ids, *y]], device=writer.trained.device)
    if x.shape[1] > (most := writer.trained.model.decoder().context):
        raise Mistake(f"prompt and answer have {x.shape[1]} tokens, more than the model's context of {most}")
    logits = writer.trained.model(x[:, :-1])[:, len(ids) - 1 :]
    return token_log_probabilities(logits, x[:, len(ids) :])[0].cpu()
