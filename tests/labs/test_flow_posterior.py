"""Two modes: the flow's bound is tighter on three seeds, and never above the exact value."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch

from descend.labs import flow_posterior
from descend.labs._evidence import judge_seed
from descend.labs.flow_posterior import Inference, draw, exact_log_p, figure, measure
from descend.seeds import generator

verdict = partial(judge_seed, flow_posterior)

SLUG = "flow-posterior-vae"


@pytest.mark.system(SLUG)
@pytest.mark.system(SLUG, "bimodal", "bound")
@pytest.mark.parametrize("seed", range(3))
def test_the_claim(seed: int) -> None:
    numbers = measure(seed, budget=2.6)
    assert verdict(numbers) == "supported", numbers
    assert min(numbers["gap"]) > 0
    assert numbers["gap"][0] < math.log(2) + 0.1  # a Gaussian on one mode loses no more than that
    assert len(figure(numbers).axes) == 1
    assert verdict({**numbers, "steps": 10}) == "open"
    assert verdict({**numbers, "gap": [0.5, 0.45]}) == "refuted"
    assert verdict({**numbers, "gap": [0.5, -0.1]}) == "refuted"  # a bound above log p(x): a wrong determinant


@pytest.mark.system(SLUG, "bound")
def test_the_exact_value_and_an_untrained_bound() -> None:
    """p(x) integrates to 1, and importance weights of any posterior have the mean p(x)."""
    line = torch.linspace(-2, 9, 1101, dtype=torch.float64)
    assert torch.trapezoid(exact_log_p(line).exp(), line) == pytest.approx(1, abs=1e-4)
    torch.manual_seed(0)
    model, x = Inference(4), draw(50, generator(0))
    bound = model.bound(x, torch.randn(50, 200, 1, generator=generator(1)))
    assert (bound.double() < exact_log_p(x)).all()
