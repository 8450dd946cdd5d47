from __future__ import annotations

from functools import partial

import pytest
import torch

from descend.labs import position_residuals
from descend.labs._evidence import judge_seed
from descend.labs.position_residuals import figure, likeness, measure

verdict = partial(judge_seed, position_residuals)

SLUG = "position-encoding-labs"


@pytest.mark.system(SLUG, "residuals")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_residuals_carry_the_position(seed: int) -> None:
    numbers = measure(seed, budget=0.09)
    assert verdict(numbers) == "supported"
    assert numbers["probe_with"][0] == numbers["probe_without"][0] > 0.9, "the same input"
    assert numbers["probe_without"][-1] < 2 * numbers["chance"]
    assert verdict({**numbers, "probe_without": numbers["probe_with"]}) == "refuted"
    assert verdict({**numbers, "cosine_with": numbers["cosine_without"]}) == "refuted"
    assert verdict({**numbers, "texts": 50}) == "open"
    assert [len(axes.get_lines()) for axes in figure(numbers).axes] == [2, 2]


@pytest.mark.system(SLUG)
def test_likeness() -> None:
    same = torch.ones(2, 5, 3)
    assert likeness(same) == pytest.approx(1)
    assert likeness(torch.eye(4)[None]) == pytest.approx(0, abs=1e-6)
