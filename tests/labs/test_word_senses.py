from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from descend.data.toys.toy_language import two_senses
from descend.engine.minimise import minimise
from descend.labs import word_senses
from descend.labs._evidence import judge_seed
from descend.labs.word_senses import BATCH, HELD, MODEL, PLACE, RATE, figure, measure
from descend.losses.language import causal_lm_loss
from descend.models.gpt2 import GPT2
from descend.nn.attention.maps import attention_maps
from descend.optim.rules import Adam

verdict = partial(judge_seed, word_senses)

SLUG = "static-versus-contextual"


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    return measure(seed=0, budget=0.1)


@pytest.mark.system("static-versus-contextual", "static")
@pytest.mark.system(SLUG)
def test_static_vectors_are_equal_and_contextual_ones_are_not(numbers: dict[str, Any]) -> None:
    for when in ("before", "after"):
        assert numbers[when]["static_difference"] == 0
        assert numbers[when]["static_probe"] == 0.5
        assert numbers[when]["contextual_difference"] > 0
        assert numbers[when]["cosine"] < 1


@pytest.mark.system(SLUG)
def test_after_training_the_sense_is_told_and_its_words_are_near(numbers: dict[str, Any]) -> None:
    assert numbers["after"]["probe"] > 0.95
    assert numbers["after"]["own_sense"] > 0.5 > numbers["before"]["own_sense"]
    assert numbers["after"]["cosine"] < 0.5 < numbers["before"]["cosine"]


def test_verdicts(numbers: dict[str, Any]) -> None:
    assert verdict(numbers) == "supported"
    doctored = (
        ("static_difference", 1e-9, "refuted"),
        ("contextual_difference", 0.0, "refuted"),
        ("probe", 0.6, "open"),
        ("own_sense", -0.1, "refuted"),
    )
    for name, value, said in doctored:
        changed = deepcopy(numbers)
        changed["after"][name] = value
        assert verdict(changed) == said


def test_figure(numbers: dict[str, Any]) -> None:
    before, after = figure(numbers).axes
    assert sum(np.size(line.get_xdata()) for line in after.get_lines()) == len(numbers["after"]["sense"])
    assert "probe" in before.get_title(loc="left")


@pytest.mark.system(SLUG, "own-sense", "probe")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_claim_holds_on_every_seed(seed: int) -> None:
    found = measure(seed, budget=0.1)
    assert verdict(found) == "supported"
    assert found["after"]["probe"] > 0.95
    assert found["after"]["own_sense"] > 0.5


@pytest.mark.system(SLUG, "heads")
def test_a_head_looks_from_the_ambiguous_word_at_the_word_that_tells_its_sense() -> None:
    """The word before it does; the one at the beginning does not. In training some head comes to look there."""
    torch.manual_seed(0)
    model, random = GPT2(MODEL), torch.Generator().manual_seed(0)

    def looks() -> torch.Tensor:
        x, _ = two_senses(HELD, random)
        maps = torch.stack(list(attention_maps(model, x).values()))  # (layers, b, heads, t, s)
        return maps[..., PLACE, : PLACE + 1].mean(1)

    before = looks()
    minimise(model, lambda: next_word_loss(model, two_senses(BATCH, random)[0]), 100, Adam(RATE))
    after = looks()
    assert after.shape == (MODEL.depth, MODEL.heads, PLACE + 1)
    assert torch.allclose(after.sum(-1), torch.ones(MODEL.depth, MODEL.heads))
    assert before[..., PLACE - 1].max() < 0.45
    assert after[..., PLACE - 1].max() > 0.6
    assert after[..., PLACE - 1].mean() > after[..., 0].mean()


def next_word_loss(model: GPT2, x: torch.Tensor) -> torch.Tensor:
    return causal_lm_loss(model(x[:, :-1]), x[:, 1:])
