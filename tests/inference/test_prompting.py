"""Prompting a trained model: choices scored as transformers scores them, chains sampled, and no weight changed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import GPT2LMHeadModel

from descend.engine.frozen import checksum
from descend.errors import Mistake
from descend.inference.prompting import agree, choose, continue_text, think
from descend.inference.writer import Writer
from descend.models.gpt2 import GPT2, GPT2Config
from descend.sampling.filters import TokenSampler
from descend.text.prompts import Shot, build_prompt
from descend.text.reasoning import ask_for_steps
from descend.text.tokenizer import Tokenizer
from tests.close import close

PROMPT = build_prompt("Translate to French", "Hello", [Shot("Cat", "Chat"), Shot("Dog", "Chien")])
CHOICES = [' "Bonjour"', ' "Chat"', " x"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights of some size, so that the choices differ."""
    path = tmp_path_factory.mktemp("model")
    tokenizer = Tokenizer.characters(
        PROMPT + "".join(CHOICES) + "Let's think step by step. Q:A Therefore, answer 0123\n"
    )
    torch.manual_seed(1)
    model = GPT2(GPT2Config(vocab=tokenizer.vocab, context=128, width=16, depth=2, heads=2, dropout=0.0))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    model.save_pretrained(path)
    tokenizer.save(path)
    return path


@pytest.fixture(scope="module")
def writer(folder: Path) -> Writer:
    return Writer.open(folder)


@pytest.mark.system("in-context-learning")
@pytest.mark.system("in-context-learning", "scoring")
def test_choices_are_scored_as_transformers_would(folder: Path, writer: Writer) -> None:
    theirs = GPT2LMHeadModel.from_pretrained(folder)
    expected, lengths = [], []
    for choice in CHOICES:
        prompt, answer = (writer.tokenizer.encode(text) for text in (PROMPT, choice))
        with torch.no_grad():
            log_p = theirs(torch.tensor([prompt + answer])).logits[0].double().log_softmax(-1)
        at = torch.arange(len(prompt) - 1, len(prompt) + len(answer) - 1)
        expected.append(log_p[at, torch.tensor(answer)].sum())
        lengths.append(len(answer))
    scored = choose(writer, PROMPT, CHOICES)
    close(scored.total.float(), torch.stack(expected).float())
    close(scored.per_token.float(), (torch.stack(expected) / torch.tensor(lengths)).float())
    with pytest.raises(Mistake, match="at least one token each"):
        choose(writer, PROMPT, ["a", ""])


@pytest.mark.system("in-context-learning", "weights-unchanged")
def test_prompting_changes_no_weight(writer: Writer) -> None:
    before = checksum(writer.trained.model)
    choose(writer, PROMPT, CHOICES)
    think(writer, "How many?", 4)
    agree(writer, PROMPT, 2, 4)
    assert checksum(writer.trained.model) == before


@pytest.mark.system("chain-of-thought", "two-stage")
def test_a_model_is_asked_twice(writer: Writer) -> None:
    steps, _ = think(writer, "How many?", 6)
    assert steps == continue_text(writer, 6)(ask_for_steps("How many?"))
    assert len(steps) <= 6


@pytest.mark.system("self-consistency", "sampled")
def test_chains_are_sampled_by_their_seeds_and_voted_on(writer: Writer) -> None:
    found, chains = agree(writer, PROMPT, 5, 8, temperature=1.0)
    assert (found, chains) == agree(writer, PROMPT, 5, 8, temperature=1.0)
    assert len(set(chains)) > 1
    one = continue_text(writer, 8, TokenSampler(1.0), seed=3)(PROMPT)
    assert chains[3] == one
    assert sum(found.counts.values()) + found.silent == 5
