"""The labs of scaling laws: what they are made of, in little, and numbers that refute them."""

from __future__ import annotations

import json
import math
import random
from types import ModuleType
from typing import Any

import pytest
import torch

from descend.catalog.systems import entries
from descend.data.toys.abilities import ABILITIES, LETTERS, WORDS, ask, chance
from descend.errors import Mistake
from descend.labs import (
    ability_suite,
    coin_floor,
    data_sweep,
    learning_rate_transfer,
    manifold_scaling,
    numbers_of_digits,
    random_feature_scaling,
    scaling_sweep,
    shape_exponents,
    solution_barriers,
    synthetic_generations,
    two_modalities,
)
from descend.labs._evidence import NeedsMore, find_needs, judge_seed
from descend.labs._word_source import CONTEXT, Source, build, count_inner, letter_losses
from descend.labs._word_source import LETTERS as SOURCE_LETTERS
from descend.seeds import generator
from proofs.labs import HERE, read

LABS = (
    ability_suite,
    coin_floor,
    data_sweep,
    learning_rate_transfer,
    manifold_scaling,
    numbers_of_digits,
    random_feature_scaling,
    scaling_sweep,
    shape_exponents,
    solution_barriers,
    synthetic_generations,
    two_modalities,
)
LITTLE = {
    coin_floor: 0.2,
    learning_rate_transfer: 0.1,
    numbers_of_digits: 0.2,
    random_feature_scaling: 1.0,
    synthetic_generations: 0.1,
    two_modalities: 0.1,
}
WHOLE = (ability_suite, data_sweep, manifold_scaling, scaling_sweep, shape_exponents)
"""Labs that say at once how much they need."""


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.__name__.rpartition(".")[2])
def test_a_lab_states_what_it_tests(lab: ModuleType) -> None:
    known = entries()
    assert lab.ENTRIES
    assert all(entry in known for entry in lab.ENTRIES)
    assert all(len(said) > 30 for said in (lab.PRINTED, lab.CLAIM, lab.SCOPE))
    assert all(prediction.note for prediction in lab.PREDICTIONS)
    assert 0 < lab.BUDGET <= 60


@pytest.mark.parametrize("lab", [*LITTLE], ids=lambda lab: lab.__name__.rpartition(".")[2])
def test_in_little_it_is_open_and_drawn(lab: ModuleType) -> None:
    """Too little work says nothing; the numbers are ready for JSON, and the figure can be drawn of them."""
    numbers = lab.measure(0, LITTLE[lab])
    json.dumps(numbers)
    assert find_needs(lab, numbers) > 0
    assert judge_seed(lab, numbers) == "open"
    assert lab.figure(numbers).axes
    assert set(lab.effects(numbers)) >= {prediction.effect for prediction in lab.PREDICTIONS}


@pytest.mark.parametrize("lab", [*WHOLE, solution_barriers], ids=lambda lab: lab.__name__.rpartition(".")[2])
def test_what_was_recorded_can_be_drawn(lab: ModuleType) -> None:
    entry = read(HERE).get(lab.__name__.rpartition(".")[2].replace("_", "-"))
    if not entry:
        pytest.skip("not recorded yet")
    assert lab.figure(entry["findings"][0]["numbers"]).axes


@pytest.mark.parametrize("lab", WHOLE, ids=lambda lab: lab.__name__.rpartition(".")[2])
def test_a_lab_without_time_says_what_it_needs(lab: ModuleType) -> None:
    with pytest.raises(NeedsMore) as raised:
        lab.measure(0, 0.1)
    assert 1 < raised.value.seconds <= lab.BUDGET


@pytest.mark.system("irreducible-loss")
def test_the_source_has_the_entropy_that_it_says() -> None:
    """−log p of the true words, per letter, tends to it; shuffled ranks change the words and not the entropy."""
    source = Source.draw(3)
    text = source.text(4000, generator(5, 1))[:, 1:].reshape(-1, 3)
    index = {tuple(word): i for i, word in enumerate(source.spelling.tolist())}
    p = source.probability[[index[tuple(word)] for word in text.tolist()]]
    assert float(-p.log().mean() / 3) == pytest.approx(source.entropy, abs=0.02)
    assert Source.draw(4).entropy == pytest.approx(source.entropy)
    assert not torch.equal(Source.draw(4).spelling, source.spelling)


@pytest.mark.system("kaplan-power-laws", "non-embedding")
@pytest.mark.system("scaling-law-sweep", "ladder")
def test_parameters_are_counted_outside_the_embeddings() -> None:
    model = build(6, 1, 0)
    embedded = model.wte.weight.numel() + model.wpe.weight.numel()
    assert count_inner(model) == sum(p.numel() for p in model.parameters()) - embedded
    with torch.no_grad():
        losses = letter_losses(model, Source.draw(0).text(200, generator(0, 1)))
    assert losses.shape == (200, CONTEXT)
    assert float(losses.mean()) == pytest.approx(math.log(SOURCE_LETTERS), abs=0.3)
    recorded = read(HERE).get("scaling-sweep")
    if recorded:
        for found in recorded["findings"]:
            numbers = found["numbers"]
            assert {"parameters", "tokens", "flops", "loss"} <= numbers.keys()
            rows = zip(numbers["parameters"], numbers["tokens"], numbers["flops"], strict=True)
            assert all(flops == pytest.approx(6 * n * d, rel=1e-5) for n, d, flops in rows)


def verify(name: str, question: str, answer: str) -> bool:
    """Each answer worked out in another way than its generator does."""
    text = question[:-1]
    if name == "addition":
        a, b = text.split("+")
        return int(answer[::-1]) == int(a) + int(b)
    if name == "unscramble":
        return answer in WORDS and sorted(text) == sorted(answer)
    if name == "context":
        *pairs, key = text.split(" ")
        return {pair[0]: pair[1] for pair in pairs}[key] == answer
    if name == "fallacy":
        rule, given, said = text.split(",")
        follows = given[1] == rule[0] and said[1] == rule[2]
        return answer == ("v" if follows else "f")
    total = eval(text.replace("=", "")) % 10
    return answer == str(total) if name == "direct" else answer[-1] == str(total) and len(answer) == 3


@pytest.mark.system("emergent-abilities", "generators", "suite")
@pytest.mark.parametrize("name", list(ABILITIES))
def test_answers_are_right_and_chance_is_what_a_guesser_gets(name: str) -> None:
    """Chance: how often the commonest answer is right, over many questions."""
    drawn = ask(name, 6000, 1)
    assert all(verify(name, *pair) for pair in drawn[:300])
    assert drawn == ask(name, 6000, 1)
    assert drawn[:5] != ask(name, 5, 2)
    answers = [answer for _, answer in drawn]
    best = max(answers.count(answer) for answer in set(answers)) / len(answers)
    if name != "steps":  # a thousand answers, six questions for each: the commonest is one by chance
        assert best == pytest.approx(chance(name), rel=0.35, abs=0.005)
    assert random.Random(0).choice(LETTERS) in LETTERS


def test_an_unknown_ability_is_a_mistake() -> None:
    with pytest.raises(Mistake, match="Did you mean 'addition'"):
        ask("adition", 1, 0)


@pytest.mark.system("model-collapse", "closed-form")
@pytest.mark.system("model-collapse")
def test_a_gaussian_that_is_fitted_again_shrinks() -> None:
    numbers = synthetic_generations.measure(3, 0.1)
    assert numbers["gaussian, closed form"][:2] == [1.0, 1 - 1 / synthetic_generations.DRAWS]
    for ours, exact in zip(numbers["gaussian"], numbers["gaussian, closed form"], strict=True):
        assert ours == pytest.approx(exact, rel=0.08)


@pytest.mark.system("scaling-explanations")
def test_aligned_copies_have_no_barrier() -> None:
    """A network with its hidden units in another order is found again; without alignment there is a barrier."""
    given, _ = solution_barriers.read_digits()
    x, y = given.x.flatten(1), given.y
    one = solution_barriers.fit(x, y, 8, 0)
    order = torch.randperm(8, generator=generator(0, 1))
    w, b, v, c = one
    other = (w[:, order], b[order], v[order], c)
    assert solution_barriers.measure_barrier(one, other, x, y) > 0.1
    again = solution_barriers.align(one, other)
    assert all(torch.equal(p, q) for p, q in zip(one, again, strict=True))
    assert solution_barriers.measure_barrier(one, again, x, y) == pytest.approx(0.0, abs=1e-5)


DOCTORED: list[tuple[ModuleType, dict[str, Any], str]] = [
    (coin_floor, {"loss": [0.0] * 6 + [0.3, 0.0], "steps": 400}, "refuted"),
    (coin_floor, {"loss": [0.0] * 6 + [math.log(2), 0.0], "steps": 400}, "supported"),
    (coin_floor, {"loss": [0.1] * 6 + [math.log(2), 0.0], "steps": 400}, "refuted"),
    (
        shape_exponents,
        {"alpha": [0.5, 0.5, 0.5], "error": [0.1] * 3, "r_squared": [0.99] * 3, "share": 1.0},
        "supported",
    ),
    (
        shape_exponents,
        {"alpha": [0.5, 0.5, 0.9], "error": [0.01] * 3, "r_squared": [0.99] * 3, "share": 1.0},
        "refuted",
    ),
    (solution_barriers, {"barrier": [0.4, 0.3], "saddles": [1.0], "negative": [0.5], "pairs": 9}, "refuted"),
    (solution_barriers, {"barrier": [0.4, 0.01], "saddles": [1.0], "negative": [0.5], "pairs": 9}, "supported"),
    (manifold_scaling, {"d": [1, 2, 4, 8], "exponent": [4, 2, 1, 0.5], "points": 12000}, "supported"),
    (manifold_scaling, {"d": [1, 2, 4, 8], "exponent": [1, 1, 1, 1], "points": 12000}, "refuted"),
]


@pytest.mark.parametrize(("lab", "numbers", "expected"), DOCTORED)
def test_doctored_numbers_are_judged(lab: ModuleType, numbers: dict[str, Any], expected: str) -> None:
    assert judge_seed(lab, numbers) == expected
