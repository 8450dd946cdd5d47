from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
import torch

from descend.labs import position_encodings
from descend.labs._evidence import judge_seed
from descend.labs.position_encodings import ENCODINGS, LENGTH, WANTED, A, B, accuracies, figure, measure, texts

verdict = partial(judge_seed, position_encodings)

SLUG = "position-encoding-labs"


@pytest.mark.system(SLUG)
def test_texts_are_what_their_labels_say() -> None:
    x, order, presence = texts(400, 12, torch.Generator().manual_seed(0))
    assert ((x == A).sum(1) == 1).all()
    assert ((x == B).sum(1) == 1).all()
    assert torch.equal((x == WANTED).any(1).long(), presence)
    assert torch.equal(((x == A).int().argmax(1) < (x == B).int().argmax(1)).long(), order)
    assert 0.4 < order.double().mean() < 0.6


@pytest.mark.system(SLUG, "exact")
@pytest.mark.system(SLUG)
@pytest.mark.system("additive-position-information")
@pytest.mark.system("alibi")
@pytest.mark.parametrize("name", ENCODINGS)
def test_who_can_tell_dog_bites_man_from_man_bites_dog(name: str) -> None:
    torch.manual_seed(1)
    model = ENCODINGS[name]().double()
    dog_bites_man = torch.tensor([[0, 5, 1]])
    with torch.no_grad():
        apart = (model(dog_bites_man)[0] - model(dog_bites_man.flip(1))[0]).abs().max()
    if name == "none":
        assert apart < 1e-12, "exactly equal outputs"
    else:
        assert apart > 1e-9


@pytest.mark.system("learned-position-embeddings", "longer")
@pytest.mark.system("learned-position-embeddings")
def test_learned_positions_refuse_a_longer_text_and_sinusoids_do_not() -> None:
    assert accuracies(ENCODINGS["learned"](), 2 * LENGTH, 0) == (None, None)
    assert None not in accuracies(ENCODINGS["learned"](), LENGTH, 0)
    for name in ("sinusoidal", "rotary", "alibi", "relative"):
        assert None not in accuracies(ENCODINGS[name](), 2 * LENGTH, 0)


def good() -> dict[str, Any]:
    n = len(ENCODINGS)
    longer = [None if name == "learned" else 0.8 for name in ENCODINGS]
    return {"encoding": list(ENCODINGS), "order": [0.51] + [0.95] * (n - 1), "presence": [0.99] * n,
            "order_at_32": longer, "presence_at_32": longer, "steps": 200}  # fmt: skip


@pytest.mark.system(SLUG)
def test_the_runner_and_its_verdict() -> None:
    numbers = measure(seed=0, budget=0.1)
    assert verdict(numbers) == "open"
    assert {len(numbers[name]) for name in ("encoding", "order", "presence", "order_at_32")} == {len(ENCODINGS)}
    json.dumps(numbers)
    assert verdict(good()) == "supported"
    assert verdict({**good(), "order": [0.9] * len(ENCODINGS)}) == "refuted"
    assert verdict({**good(), "order": [0.5] * len(ENCODINGS)}) == "refuted"
    assert verdict({**good(), "order_at_32": [0.8] * len(ENCODINGS)}) == "refuted"
    assert len(figure(good()).axes[0].patches) == 3 * len(ENCODINGS)
