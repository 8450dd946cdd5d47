"""The degradation lab: a short run has the form, the verdict reads the numbers, identity layers change nothing."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

from descend.labs import degradation
from descend.labs._evidence import judge_seed
from descend.labs.degradation import NETS, append_identities, descend, figure, measure, thin

verdict = partial(judge_seed, degradation)

SLUG = "degradation-experiment"


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    return measure(seed=0, budget=0.2)


@pytest.mark.system(SLUG)
def test_a_short_run(numbers: dict[str, Any]) -> None:
    """Too short to claim anything; but gradients do not vanish with depth, they grow."""
    assert list(zip(numbers["net"], numbers["layers"], strict=True)) == list(NETS)
    assert all(0 <= e <= 1 for e in numbers["error"])
    gradient = dict(zip(NETS, numbers["first_gradient"], strict=True))
    assert gradient["plain", 56] > 10 * gradient["plain", 20] > 0
    assert gradient["residual", 56] < 0.1 * gradient["plain", 56]
    assert numbers["identity_layers_change"] == 0
    assert verdict(numbers) == "open"
    assert len(figure(numbers).axes) == 2


def made(loss: list[float], error: list[float], change: float = 0.0) -> dict[str, Any]:
    names = {"net": [n for n, _ in NETS], "layers": [k for _, k in NETS]}
    return {**names, "loss": loss, "error": error, "steps": 500, "images": 1000, "identity_layers_change": change}


@pytest.mark.system(SLUG)
def test_the_verdict_reads_the_numbers() -> None:
    """In the order of NETS: plain 20, plain 56, residual 20, residual 56."""
    assert verdict(made([0.1, 0.5, 0.05, 0.06], [0.02, 0.2, 0.0, 0.01])) == "supported"
    assert verdict(made([0.1, 0.1, 0.05, 0.06], [0.02, 0.02, 0.0, 0.01])) == "refuted"  # no degradation
    assert verdict(made([0.1, 0.5, 0.05, 0.3], [0.02, 0.2, 0.0, 0.1])) == "refuted"  # not cured
    assert verdict(made([0.1, 0.5, 0.2, 0.06], [0.02, 0.2, 0.0, 0.01])) == "refuted"  # residual 20 learns worse
    assert verdict(made([0.1, 0.5, 0.05, 0.06], [0.02, 0.2, 0.0, 0.03])) == "supported"  # within the error
    assert verdict(made([0.1, 0.5, 0.05, 0.06], [0.02, 0.2, 0.0, 0.01], change=1e-7)) == "refuted"


@pytest.mark.system("degradation-experiment", "identity-layers")
@pytest.mark.system(SLUG)
def test_identity_layers_need_a_relu_before_them() -> None:
    """Behind a ReLU they are exactly the identity; behind a bare convolution they cut the negative half."""
    torch.manual_seed(0)
    conv, x = nn.Conv2d(3, 4, 3, padding=1), torch.randn(2, 3, 6, 6)
    with torch.no_grad():
        shallow = nn.Sequential(conv, nn.ReLU())
        assert torch.equal(append_identities(shallow, 4, 5)(x), shallow(x))
        assert torch.equal(append_identities(conv, 4, 5)(x), conv(x).relu())
        assert not torch.equal(append_identities(conv, 4, 5)(x), conv(x))


def test_training_lowers_the_loss() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(64, 5), torch.arange(64) % 3
    losses, gradient = descend(nn.Linear(5, 3), x, y, 60, torch.Generator().manual_seed(0))
    assert losses[-1] < losses[0]
    assert gradient > 0
    assert thin([1.0, 3.0] * 40) == [2.0] * 40
