from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

import pytest

from descend.labs import skip_connections
from descend.labs._evidence import judge_seed
from descend.labs.skip_connections import figure, measure

verdict = partial(judge_seed, skip_connections)


@pytest.fixture(scope="module", params=[0, 1, 2])
def numbers(request: pytest.FixtureRequest) -> dict[str, Any]:
    return measure(seed=request.param, budget=1.0)


@pytest.fixture
def edge(numbers: dict[str, Any]) -> dict[str, float]:
    return dict(zip(numbers["network"], numbers["edge"], strict=True))


@pytest.mark.system("unet")
@pytest.mark.system("unet", "edges")
@pytest.mark.system("conv-encoder-decoder")
@pytest.mark.system("conv-encoder-decoder", "segmentation")
def test_skips_keep_the_edges(edge: dict[str, float]) -> None:
    assert edge["U-Net"] > 0.75
    assert edge["U-Net"] > edge["encoder-decoder"] + 0.1


@pytest.mark.system("unet")
@pytest.mark.system("unet", "zeroed-skips")
def test_without_its_skips_a_u_net_fails(edge: dict[str, float]) -> None:
    assert edge["zeroed"] < edge["U-Net"] - 0.2


@pytest.mark.system("fcn")
@pytest.mark.system("fcn", "edges")
def test_every_finer_map_makes_better_edges(edge: dict[str, float]) -> None:
    assert edge["FCN-8s"] > edge["FCN-16s"] + 0.02 > edge["FCN-32s"] + 0.04


def test_verdicts(numbers: dict[str, Any]) -> None:
    assert verdict(numbers) == "supported"
    for name, value in (("encoder-decoder", 1.0), ("zeroed", 0.95), ("FCN-32s", 1.0), ("FCN-8s", 0.1)):
        doctored = deepcopy(numbers)
        doctored["edge"][numbers["network"].index(name)] = value
        assert verdict(doctored) == "refuted", name
    doctored = deepcopy(numbers)
    doctored["edge"][numbers["network"].index("U-Net")] = 0.6
    assert verdict(doctored) == "open"


def test_figure(numbers: dict[str, Any]) -> None:
    axes = figure(numbers).axes[0]
    heights = [bar.get_bbox().height for bar in axes.patches]  # type: ignore[attr-defined]
    assert heights == [*numbers["edge"], *numbers["whole"]]
