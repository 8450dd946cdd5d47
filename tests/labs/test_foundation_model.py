from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
import torch

from descend.labs import foundation_model
from descend.labs._evidence import judge_seed
from descend.labs.foundation_model import (
    LABELS,
    LENGTH,
    LETTERS,
    STEPS,
    build,
    encode,
    examples,
    figure,
    fine_tune,
    learn_tokenizer,
    measure,
    pretrain,
    reinforce,
    sentences,
)
from descend.losses.language import causal_lm_loss

verdict = partial(judge_seed, foundation_model)

SLUG = "foundation-model-pipeline"
GOOD: dict[str, Any] = {
    "steps": 200, "model": ["fine-tuned", "scratch", "base", "reward only"], "labels": 96,
    "circle": [0.9, 0.3, 0.0, 0.2], "next": [0.9, 0.1, 0.3, 0.0],
    "scale": {"width": [4, 12, 48], "loss": [3.0, 2.0, 1.0], "small_corpus_loss": 2.0},
}  # fmt: skip


@pytest.mark.system(SLUG)
def test_sentences_go_round_their_circles() -> None:
    texts, circles, following = sentences(200, 10, torch.Generator().manual_seed(0))
    rows = torch.tensor([[LETTERS.index(letter) for letter in text.split()] for text in texts])
    step = torch.tensor(STEPS)[circles]
    assert ((rows[:, -1] + step) % len(LETTERS)).tolist() == following
    right = (rows[:, :-1] + step[:, None]) % len(LETTERS) == rows[:, 1:]
    assert 0.85 < right.double().mean() < 1, "a few mistakes"


@pytest.mark.system("foundation-model-pipeline", "stages")
@pytest.mark.system(SLUG)
def test_instructions_and_answers_are_words_of_the_tokenizer() -> None:
    asked, answers = examples(10, torch.Generator().manual_seed(0))
    tokenizer = learn_tokenizer(asked)
    x, y = encode(tokenizer, asked), encode(tokenizer, answers)
    assert x.shape == (10, LENGTH + 1)
    assert y.shape == (10, 1)
    assert tokenizer.decode(x[0].tolist()) == asked[0]
    assert [text.split()[-1] for text in asked[:2]] == ["circle", "next"]
    assert all(answer in LABELS for answer in answers[::2])
    assert all(answer in LETTERS for answer in answers[1::2])


@pytest.mark.system("foundation-model-pipeline", "stages")
@pytest.mark.system(SLUG)
def test_each_stage_learns() -> None:
    random = torch.Generator().manual_seed(0)
    texts = sentences(200, LENGTH + 2, random)[0]
    asked, answers = examples(8, random)
    tokenizer = learn_tokenizer(texts)
    corpus, x, y = encode(tokenizer, texts), encode(tokenizer, asked), encode(tokenizer, answers).squeeze(1)

    def chance_of(model: torch.nn.Module) -> float:
        with torch.no_grad():
            return float(model(x)[:, -1].softmax(-1)[range(8), y].mean())

    def loss_of(model: torch.nn.Module) -> float:
        with torch.no_grad():
            return float(causal_lm_loss(model(corpus[:, :-1]), corpus[:, 1:]))

    base, rewarded = build(tokenizer, 0, 16), build(tokenizer, 0, 16)
    before, untrained = loss_of(base), chance_of(rewarded)
    pretrain(base, corpus, 30, 0)
    assert loss_of(base) < before - 0.1
    unadapted = chance_of(base)
    fine_tune(base, x, y, 30, 0)
    assert chance_of(base) > 2 * unadapted
    reinforce(rewarded, x, y, 40, 0)
    assert chance_of(rewarded) > 1.2 * untrained, "reward alone does learn; it is slow"


@pytest.mark.system(SLUG)
def test_the_whole_pipeline_runs_and_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("descend.labs.foundation_model.CORPUS", 300)
    numbers = measure(seed=0, budget=0.1)
    assert verdict(numbers) == "open"
    assert numbers == measure(seed=0, budget=0.1)
    json.dumps(numbers)
    assert len(figure(numbers).axes) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"circle": [0.9, 0.85, 0.0, 0.2]},  # scratch is as good
        {"next": [0.9, 0.1, 0.85, 0.0]},  # so is the base
        {"circle": [0.9, 0.3, 0.0, 0.85]},  # so is reward alone
        {"scale": {**GOOD["scale"], "loss": [2.0, 3.0, 1.0]}},
        {"scale": {**GOOD["scale"], "small_corpus_loss": 0.9}},
    ],
)
def test_the_verdict_needs_every_part(change: dict[str, Any]) -> None:
    assert verdict(GOOD) == "supported"
    assert verdict({**GOOD, **change}) == "refuted"
    assert verdict({**GOOD, **change, "steps": 100}) == "open"
