"""The comparison of BERT, GPT and T5: its chain, its questions, its counts, and what its verdict follows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import torch

from descend.labs import pretraining_families
from descend.labs._evidence import judge_seed
from descend.labs.pretraining_families import (
    FAMILIES,
    HIDDEN,
    LENGTH,
    MASK,
    ROWS,
    WORDS,
    ask,
    best,
    chain,
    figure,
    measure,
    models,
    objective,
    pairs_seen,
    texts,
)
from tests.close import close

verdict = partial(judge_seed, pretraining_families)

SLUG = "pretraining-family-comparison"


@pytest.fixture(scope="module")
def numbers() -> Iterator[dict[str, Any]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("descend.labs.pretraining_families.TESTS", 1000)
        yield measure(seed=0, budget=0.1)


@pytest.mark.system("pretraining-family-comparison", "pairs")
@pytest.mark.system(SLUG)
def test_pairs_of_positions(numbers: dict[str, Any]) -> None:
    """MF 20.8.1: all-to-all against lower-triangular, found by changing one word at a time."""
    assert numbers["bert_pairs"] == LENGTH**2
    assert numbers["gpt_pairs"] == LENGTH * (LENGTH + 1) // 2
    assert pairs_seen(lambda x: torch.nn.functional.one_hot(x, 20).double(), torch.zeros(1, LENGTH).long()) == LENGTH


@pytest.mark.system("pretraining-family-comparison", "objectives")
@pytest.mark.system(SLUG)
def test_the_best_possible_by_enumeration() -> None:
    random = torch.Generator().manual_seed(0)
    p = chain(random)
    close(p.sum(1), torch.ones(WORDS, dtype=torch.float64))
    x, t = texts(p, 4, random), 6
    for row in x:
        a, words, b = int(row[t - 1]), row[t : t + 2].tolist(), int(row[t + 2])
        ways = {(u, v): float(p[a, u] * p[u, v] * p[v, b]) for u in range(WORDS) for v in range(WORDS)}
        expected = -math.log(ways[words[0], words[1]] / sum(ways.values())) / HIDDEN
        assert best(p, "span", row[None], t).item() == pytest.approx(expected)
        one = [float(p[a, u] * p[u, int(row[t + 1])]) for u in range(WORDS)]
        assert best(p, "middle", row[None], t).item() == pytest.approx(-math.log(one[words[0]] / sum(one)))
        assert best(p, "next", row[None], t).item() == pytest.approx(-math.log(float(p[a, words[0]])))


@pytest.mark.system("pretraining-family-comparison", "objectives")
@pytest.mark.system(SLUG)
def test_no_question_shows_its_answer() -> None:
    """−log p changes with the words around, and what is asked is never read: all answers together have mass 1."""
    torch.manual_seed(0)
    x = texts(chain(torch.Generator().manual_seed(0)), 1, torch.Generator().manual_seed(1)).repeat(WORDS, 1)
    x[:, 6] = torch.arange(WORDS)
    for family, model in models().items():
        for row in ("middle", "next"):
            close(ask(family, model.eval(), row, x, 6).exp().reciprocal().sum(), torch.tensor(1.0))
    every = x[:1].repeat(WORDS**2, 1)
    every[:, 6], every[:, 7] = torch.arange(WORDS**2) // WORDS, torch.arange(WORDS**2) % WORDS
    for family, model in models().items():
        mass = (-HIDDEN * ask(family, model.eval(), "span", every, 6)).exp().sum()
        close(mass, torch.tensor(1.0))


@pytest.mark.system("pretraining-family-comparison", "objectives")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("family", FAMILIES)
def test_objectives_can_be_learned(family: str) -> None:
    torch.manual_seed(0)
    random, model = torch.Generator().manual_seed(0), models()[family]
    x = texts(chain(random), 4, random)
    optimizer, losses = torch.optim.Adam(model.parameters(), 1e-2), []
    for _ in range(30):
        loss = objective(family, model, x, torch.Generator().manual_seed(3))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.4 * losses[0]
    assert MASK >= WORDS


@pytest.mark.system(SLUG)
def test_verdicts(numbers: dict[str, Any]) -> None:
    """The first is what 900 steps gave."""
    won = {
        **numbers, "best_possible": [0.6, 0.9, 0.75], "bert": [0.63, 1.1, 0.95], "gpt": [0.93, 0.92, 0.94],
        "t5": [0.8, 0.96, 0.84], "errors": dict.fromkeys(numbers["errors"], 0.01),
    }  # fmt: skip
    assert verdict(won) == "supported"
    assert verdict({**won, "bert": [0.9, 1.1, 0.95]}) == "open"  # not trained yet
    assert verdict({**won, "t5": [0.8, 0.96, 0.94]}) == "open"  # as good as another
    assert verdict({**won, "t5": [0.55, 0.96, 0.84]}) == "refuted"
    assert verdict({**won, "gpt_pairs": 3}) == "refuted"


def test_numbers_and_figure(numbers: dict[str, Any]) -> None:
    assert numbers["row"] == list(ROWS)
    assert numbers == measure(seed=0, budget=0.1)
    assert verdict(numbers) == "open"  # a tenth of a second trains nothing
    assert all(numbers[f][i] > numbers["best_possible"][i] - 0.05 for f in FAMILIES for i in range(3))
    assert len(figure(numbers).axes[0].patches) == 9
