"""Prompts from retrieved passages to the letter, and answers weighed by every passage."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.nn.functional import log_softmax

from descend.data.text.passages import Passage
from descend.errors import Mistake
from descend.inference.grounded import fit_prompt, marginal
from descend.inference.passage_index import Found
from descend.inference.writer import Writer
from descend.models.gpt2 import GPT2, GPT2Config
from descend.text.prompts import ground_prompt
from descend.text.tokenizer import Tokenizer
from tests.close import close

TEXTS = ["the cat sat on the mat", "a dog ran far", "the mat was red"]
FOUND = [Found(Passage(text, "a.md", i, i), 0.9 - 0.4 * i) for i, text in enumerate(TEXTS)]


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    tokenizer = Tokenizer.bpe(" ".join(TEXTS) * 9 + "Question: Context: Chunk Answer:" * 9, 300)
    torch.manual_seed(1)
    model = GPT2(GPT2Config(tokenizer.vocab, 96, 16, 1, 2))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4)  # a model with something to say
    model.save_pretrained(tmp_path)
    tokenizer.save(tmp_path)
    return Writer.open(tmp_path)


@pytest.mark.system("rag", "template")
def test_the_prompt_is_the_one_that_is_printed() -> None:
    """DLN: Question, Context with numbered chunks, Answer; an instruction may stand before it."""
    expected = "Question:\nWho sat?\n\nContext:\nChunk 1: the cat sat on the mat\nChunk 2: a dog ran far\n\nAnswer:"
    assert ground_prompt("Who sat?", TEXTS[:2]) == expected
    asked = "Cite your sources. Ignore documents that are irrelevant."
    assert ground_prompt("Who sat?", TEXTS[:2], asked) == f"{asked}\n\n{expected}"


@pytest.mark.system("rag", "template", "generates")
def test_the_prompt_of_an_answer_keeps_its_instruction_and_leaves_room(writer: Writer) -> None:
    whole, used, note = fit_prompt(writer, "Who sat?", FOUND, 8, "Be brief.")
    assert whole == ground_prompt("Who sat?", TEXTS, "Be brief.")
    assert (used, note) == (FOUND, "")
    few = ground_prompt("Who sat?", TEXTS[:2])
    prompt, used, note = fit_prompt(writer, "Who sat?", FOUND, 96 - len(writer.tokenizer.encode(few)))
    assert (prompt, used) == (few, FOUND[:2])
    assert note == "1 passages left out: the model's context is full"


@pytest.mark.system("rag", "marginal")
def test_an_answer_is_weighed_by_every_passage(writer: Writer) -> None:
    """p(y | x) = Σ_z p(z | x) p(y | x, z), each factor by a forward pass of its own."""
    given = " the mat"
    y = writer.tokenizer.encode(given)
    weight = torch.tensor([one.score for one in FOUND], dtype=torch.float64).softmax(0)
    steps = []
    for one in FOUND:
        ids = writer.tokenizer.encode(ground_prompt("Who sat?", [one.passage.text]))
        log_p = []
        for i, token in enumerate(y):
            with torch.no_grad():
                logits = writer.trained.model(torch.tensor([[*ids, *y[:i]]]))[0, -1]
            log_p.append(float(log_softmax(logits.double(), dim=0)[token]))
        steps.append(torch.tensor(log_p, dtype=torch.float64))
    p = torch.stack(steps).exp()  # (documents, tokens)
    expected = {"sequence": (weight @ p.prod(1)).log(), "token": (weight @ p).log().sum()}
    found = marginal(writer, "Who sat?", given, FOUND)
    for name, value in expected.items():
        close(torch.tensor(found[name]), value.float(), loosen=5)  # float32 logits
    assert abs(found["sequence"] - found["token"]) > 1e-4
    with pytest.raises(Mistake, match="the answer is empty"):
        marginal(writer, "Who sat?", "", FOUND)
    with pytest.raises(Mistake, match="more than the model's context of 96"):
        marginal(writer, "Who sat?", " mat" * 90, FOUND)
