"""Rotary positions beyond the trained length: what the rules change, and what the verdict follows."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch

from descend.labs import longer_rope
from descend.labs._evidence import judge_seed
from descend.labs.longer_rope import FACTOR, HEADS, LONG, RULES, TRAINED, WIDTH, figure, with_rule
from descend.models.llama import Llama, LlamaConfig
from tests.close import close

verdict = partial(judge_seed, longer_rope)

SLUG = "rope-scaling"


@pytest.mark.system(SLUG)
def test_rules_keep_the_weights_and_change_the_angles() -> None:
    """Interpolated angles at place m·s are those at m without a rule; the first place has none to change."""
    torch.manual_seed(0)
    model = Llama(LlamaConfig(30, TRAINED, WIDTH, 1, HEADS, HEADS, WIDTH, rope=RULES["none"])).eval()
    x = torch.randint(30, (2, LONG))
    found = {name: with_rule(model, rule)(x) for name, rule in RULES.items()}
    close(found["none"][:, :TRAINED], model(x[:, :TRAINED]))
    for name in ("interpolation", "NTK"):
        close(found[name][:, 0], found["none"][:, 0])
        assert (found[name][:, 40:] - found["none"][:, 40:]).abs().max() > 1e-4
    places = torch.arange(TRAINED)
    close(RULES["interpolation"].angles(FACTOR * places, 16)[0], RULES["none"].angles(places, 16)[0])


def good() -> dict[str, Any]:
    return {"rule": list(RULES), "within": [50.0, 60.0, 52.0], "beyond": [80.0, 70.0, 55.0], "steps": 400}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "supported"),
        ({"steps": 10}, "open"),
        ({"beyond": [51.0, 45.0, 45.0]}, "refuted"),
        ({"beyond": [80.0, 90.0, 55.0]}, "refuted"),
        ({"beyond": [80.0, 70.0, 79.0]}, "refuted"),
    ],
)
def test_verdicts(change: dict[str, Any], expected: str) -> None:
    assert verdict({**good(), **change}) == expected


def test_figure() -> None:
    assert len(figure(good()).axes[0].patches) == 6
