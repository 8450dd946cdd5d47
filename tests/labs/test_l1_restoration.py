"""L1 against L2 in restoration: the measures against closed forms, the claim, and a verdict that can fall otherwise."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch

from descend.labs import l1_restoration
from descend.labs._evidence import judge_seed
from descend.labs.l1_restoration import figure, measure, psnr, sharpness
from tests.close import close

verdict = partial(judge_seed, l1_restoration)

SLUG = "l1-loss"


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    return measure(seed=0, budget=0.5)


@pytest.mark.system("l1-loss", "restoration")
@pytest.mark.system(SLUG)
def test_measures() -> None:
    """A step edge, the same edge blurred, and a known error."""
    edge = torch.zeros(1, 1, 4, 4)
    edge[..., 2:] = 1
    blurred = torch.tensor([0.0, 1 / 3, 2 / 3, 1.0]).expand(1, 1, 4, 4)
    close(sharpness(edge), torch.tensor([1 / 3]))
    close(sharpness(blurred), torch.tensor([1 / 9]))
    close(psnr(edge + 0.1, edge), torch.tensor([20.0]))


@pytest.mark.system("l1-loss", "restoration")
@pytest.mark.system(SLUG)
def test_l1_is_sharper(numbers: dict[str, Any]) -> None:
    """DLN-A.55. L1 also has the smaller absolute error, since that is what it minimises."""
    assert verdict(numbers) == "supported"
    assert all(a > b for a, b in zip(numbers["sharpness_l1"], numbers["sharpness_l2"], strict=True))
    assert all(a < b for a, b in zip(numbers["mae_l1"], numbers["mae_l2"], strict=True))
    assert min(numbers["psnr_l1"] + numbers["psnr_l2"]) > 14
    assert max(numbers["sharpness_l1"]) < 1  # neither is as sharp as the truth


@pytest.mark.parametrize(("gain", "said"), [(0.1, "supported"), (-0.1, "refuted"), (0.03, "open")])
def test_verdict(gain: float, said: str) -> None:
    assert verdict({"sharper": gain, "errors": {"sharper": 0.01}}) == said


def test_figure(numbers: dict[str, Any]) -> None:
    assert len(figure(numbers).axes) == 24
