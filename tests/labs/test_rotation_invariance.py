from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch

from descend.labs import rotation_invariance
from descend.labs._evidence import judge_seed
from descend.labs.rotation_invariance import ANGLES, NETWORKS, figure, measure, network
from descend.metrics.equivariance import invariance_error, turn_quarters

verdict = partial(judge_seed, rotation_invariance)

FOUND: dict[str, Any] = {
    "degrees": list(ANGLES),
    "plain": [0.97, 0.6, 0.4, 0.3, 0.4, 0.3, 0.4, 0.6],
    "ric": [0.93, 0.9, 0.93, 0.9, 0.93, 0.9, 0.93, 0.9],
    "bessel": [0.93, 0.9, 0.93, 0.9, 0.93, 0.9, 0.93, 0.9],
    "steps": 100,
    "test_images": 240,
}


@pytest.mark.system("translation-equivariance-invariance")
@pytest.mark.system("ric-convolution")
@pytest.mark.system("ric-convolution", "network")
@pytest.mark.system("bessel-convolution")
@pytest.mark.system("bessel-convolution", "pooled")
def test_whole_networks_are_invariant_to_quarter_turns() -> None:
    x = torch.rand(3, 1, 20, 20, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    models = {name: network(name).double().eval() for name in NETWORKS}
    errors = {name: invariance_error(model, x, turn_quarters) for name, model in models.items()}
    assert errors["ric"] < 1e-10
    assert errors["bessel"] < 1e-5  # the basis was rounded to float32
    assert errors["plain"] > 1e-4


@pytest.mark.system("translation-equivariance-invariance")
@pytest.mark.system("ric-convolution")
@pytest.mark.system("bessel-convolution")
def test_measured_in_little() -> None:
    numbers = measure(seed=0, budget=0.5)
    assert verdict(numbers) == "open"
    for name in ("ric", "bessel"):
        quarters = [numbers[name][ANGLES.index(a)] for a in (0, 90, 180, 270)]
        assert max(quarters) - min(quarters) <= 1.01 / numbers["test_images"]
    assert len(figure(numbers).axes) == 1


def test_verdicts_can_fail() -> None:
    assert verdict(FOUND) == "supported"
    assert verdict(FOUND | {"plain": [0.97] * 8}) == "refuted"
    assert verdict(FOUND | {"ric": FOUND["plain"]}) == "refuted"
    assert verdict(FOUND | {"bessel": [0.93, 0.9, 0.85, *FOUND["bessel"][3:]]}) == "refuted"
    assert verdict(FOUND | {"plain": [0.5] * 8}) == "open"
