"""The lab's curves, and verdicts on doctored numbers."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

import pytest

from descend.labs import vanishing_in_time
from descend.labs._evidence import judge_seed
from descend.labs.vanishing_in_time import STEPS, figure, measure

verdict = partial(judge_seed, vanishing_in_time)

pytestmark = [pytest.mark.system("vanishing-exploding-in-time"), pytest.mark.system("lstm-gradient-highway")]


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    return measure(seed=0, budget=0.1)


def test_the_claim_is_supported(numbers: dict[str, Any]) -> None:
    assert verdict(numbers) == "supported"
    assert numbers["curves"]["linear, ρ = 1.1"][49] == pytest.approx(106.72, rel=1e-3)  # VOM prints 97.02
    assert numbers["curves"]["linear, ρ = 0.9"][49] == pytest.approx(0.00573, rel=1e-3)  # VOM prints 0.0052
    assert len(numbers["distance"]) == STEPS
    assert figure(numbers).axes[0].get_yscale() == "log"


@pytest.mark.parametrize(
    ("name", "factor"), [("linear, ρ = 0.9", 1.1), ("tanh, ρ = 1.1", 1e4), ("LSTM, b_f = 4", 1e-6)]
)
def test_another_outcome_is_refuted(numbers: dict[str, Any], name: str, factor: float) -> None:
    doctored = deepcopy(numbers)
    doctored["curves"][name] = [value * factor for value in doctored["curves"][name]]
    assert verdict(doctored) == "refuted"


@pytest.mark.system("vanishing-exploding-in-time", "curves")
@pytest.mark.system("lstm-gradient-highway", "against-rnn")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_claim_holds_on_every_seed(seed: int) -> None:
    assert verdict(measure(seed, budget=0.1)) == "supported"
