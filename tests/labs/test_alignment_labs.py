"""The labs of alignment: their language and annotators, what they count, and that they can be refuted."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
import torch

from descend.labs import biased_rewards, dpo_and_ppo, four_objectives, reward_hacking
from descend.labs._answers import (
    BLAME,
    LONGEST,
    PRAISE,
    STOP,
    Judged,
    Texts,
    align,
    compare,
    count_mistakes,
    draw_answers,
    lay_out,
    learn_reward,
    log_chance,
    log_ratio,
    make_answer,
    quality,
    speak,
    write,
)
from descend.labs._evidence import NeedsMore, judge_seed
from tests.close import close

GOOD, CLEVER, FINE = PRAISE
AND, COMMA = 2, 1


def test_answers_and_their_quality() -> None:
    assert make_answer([GOOD]) == [GOOD, STOP]
    assert make_answer([GOOD, CLEVER, BLAME[0]]) == [GOOD, COMMA, CLEVER, AND, BLAME[0], STOP]
    drawn = draw_answers(300, torch.Generator().manual_seed(0))
    assert max(map(len, drawn)) == LONGEST
    assert not any(map(count_mistakes, drawn))
    assert {quality(answer) for answer in drawn} >= {-2.0, -1.0, 0.0, 1.0, 2.0}
    assert count_mistakes([GOOD, GOOD, AND, GOOD, CLEVER]) == 3  # twice said again, once nothing between
    assert quality([GOOD] * 8) == 1 - 7
    texts = lay_out(drawn)
    assert texts.answers() == drawn


@pytest.mark.system("biased-reward-labs")
def test_annotators_err_as_bradley_and_terry_say() -> None:
    pair = [make_answer([GOOD]), make_answer([GOOD, CLEVER])]
    found = compare(pair * 4000, quality, 0.5, torch.Generator().manual_seed(0))
    longer = found.written[:, 0].sum(1) == len(pair[1])  # better by 1, and τ = 0.5
    assert float(longer.double().mean()) == pytest.approx(1 / (1 + 2.718281828**-2), abs=0.02)
    sure = compare([*pair, *pair[:1] * 2], quality, 0.0, torch.Generator().manual_seed(0))
    assert sure.tokens.shape[0] == 1  # equal qualities are not compared
    assert Texts(sure.tokens[:, 0], sure.written[:, 0]).answers() == [pair[1]]


@pytest.mark.system("reward-hacking")
def test_policies_and_reward_models_of_the_language() -> None:
    reference = speak(4, 0)
    texts = write(reference, 6, 0)
    ratio, log_p = log_ratio(reference, reference, texts)
    assert not ratio.any()
    close(log_chance(reference, texts), log_p.sum() / texts.written.sum())
    policy = align(reference, Judged(reward_hacking.count_praise), 0.1, 2, 0, batch=8)
    assert log_ratio(policy, reference, texts)[0].abs().sum() > 0
    pairs = compare(draw_answers(40, torch.Generator().manual_seed(0)), quality, 0.0, torch.Generator().manual_seed(0))
    marks = learn_reward(reference, pairs, 2, 0)
    assert marks(texts.tokens, texts.written).shape == (6,)


@pytest.mark.parametrize("lab", [biased_rewards, dpo_and_ppo, four_objectives, reward_hacking])
def test_too_small_a_budget_is_said(lab: ModuleType) -> None:
    with pytest.raises(NeedsMore):
        lab.measure(0, 0.5)


HACKED: dict[str, Any] = {
    "beta": ["reference", 1.0, 0.3, 0.1, 0.0], "proxy": [1.2, 2.0, 3.0, 5.0, 8.0], "true": [0.0, 0.5, 1.0, 0.0, -6.0],
    "kl": [0.0, 1.0, 3.0, 10.0, 70.0], "perplexity": [3.0, 3.0, 3.0, 9.0, 900.0], "steps": 100,
}  # fmt: skip
BIASED: dict[str, Any] = {
    "length": -0.97, "spread at equal length": 0.01, "biased twin preferred": 1.0, "fair reward and quality": 0.96,
    "compared": 0.17, "asked for": 0.26, "reference": 0.17, "policy": 0.7, "fair policy": 0.35, "quality": {},
}  # fmt: skip
ROWS: dict[str, Any] = {
    "objective": ["causal", "masked", "instructions", "RLHF"], "text": [1.0, 1.5, 2.0, 3.0],
    "hidden": [0.3, 0.5, 0.3, 0.3], "instructions": [0.2, 0.2, 0.9, 0.3], "reward": [0.0, 0.0, 0.1, 1.5], "steps": 1200,
}  # fmt: skip
WAYS: dict[str, Any] = {
    "reference": {"J": -0.3, "kl": 0.0, "quality": -0.3}, "best": 0.6, "passes": {"DPO": 2, "PPO": 3},
    **{f"{way}, {count}": {"J": j, "kl": 1.0, "quality": 1.0}
       for way in ("DPO", "PPO") for count, j in (("few", -5.0), ("many", 0.3))},
}  # fmt: skip


@pytest.mark.parametrize(
    ("lab", "numbers", "worse"),
    [
        (reward_hacking, HACKED, {"true": [0.0, 0.5, 1.0, 1.0, 1.0]}),
        (reward_hacking, HACKED, {"kl": [0.0, 1.0, 3.0, 2.0, 70.0]}),
        (biased_rewards, BIASED, {"policy": 0.3}),
        (biased_rewards, BIASED, {"length": -0.5}),
        (four_objectives, ROWS, {"hidden": [0.5, 0.5, 0.3, 0.3]}),
        (dpo_and_ppo, WAYS, {"PPO, many": {"J": -0.3, "kl": 0.0, "quality": 0.0}}),
    ],
)
def test_they_can_be_refuted(lab: ModuleType, numbers: dict[str, Any], worse: dict[str, Any]) -> None:
    assert judge_seed(lab, numbers) == "supported"
    assert judge_seed(lab, {**numbers, **worse}) == "refuted"
    assert lab.figure(numbers).axes


def test_unfair_marks_say_nothing() -> None:
    """Where the same model does not even learn quality, the lab of biases is open."""
    assert judge_seed(biased_rewards, {**BIASED, "fair reward and quality": 0.2}) == "open"
