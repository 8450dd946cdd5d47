"""The lab on paths: lesions, terms and the verdict."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

from descend.labs import residual_paths
from descend.labs._evidence import judge_seed
from descend.labs.residual_paths import BLOCKS, PLAIN, WIDTH, Tower, figure, layer, lesions, measure, measure_terms
from descend.nn.convolution.residual import Residual
from tests.close import close

verdict = partial(judge_seed, residual_paths)

SLUG = "residual-stack-analysis"


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    return measure(seed=0, budget=0.1)


@pytest.mark.system("residual-stack-analysis", "identity")
@pytest.mark.system(SLUG)
def test_a_short_run(numbers: dict[str, Any]) -> None:
    assert len(numbers["term"]) == len(numbers["error_without"]) == BLOCKS
    assert len(numbers["plain"]["error_without"]) == PLAIN
    assert numbers["paths"] == 2**BLOCKS == sum(numbers["lengths"]["of"])
    assert numbers["lengths"]["mean"] == BLOCKS / 2
    assert numbers["paths_error"] < 1e-12
    assert numbers["identity_without_all"]
    assert verdict(numbers) == "open"
    assert len(figure(numbers).axes) == 3


@pytest.mark.system("residual-stack-analysis", "norms")
@pytest.mark.system(SLUG)
def test_a_block_without_a_term_is_not_missed() -> None:
    """Terms and lesions by hand: a silent block has term 0 and its removal changes nothing at all."""
    torch.manual_seed(0)
    model: Any = Tower([Residual(layer()) for _ in range(4)]).eval()
    nn.init.zeros_(model.blocks[2].f[3].weight)
    nn.init.zeros_(model.blocks[2].f[3].bias)
    x, y = torch.randn(20, 64), torch.arange(20) % 10
    found, seen = lesions(model, x, y), measure_terms(model, x, y)
    assert seen["term"][2] == 0
    assert found["loss_without"][2] == found["whole_loss"] == seen["loss_without_smallest_quarter"]
    assert found["loss_without"][1] != found["whole_loss"]
    with torch.no_grad():
        h = model.first(x)
        close(seen["term"][0], (model.blocks[0].f(h).norm(dim=1) / h.norm(dim=1)).mean())
    assert h.shape[1] == WIDTH


@pytest.mark.system(SLUG)
def test_the_verdict_reads_the_numbers() -> None:
    good = {
        "steps": 400, "paths_error": 0.0, "identity_without_all": True, "whole_error": 0.04,
        "error_without": [0.05] * 22 + [0.5] * 2, "plain": {"whole_error": 0.08, "error_without": [0.7] * 6},
        "loss_without_smallest_quarter": 0.2, "loss_without_largest_quarter": 0.9,
    }  # fmt: skip
    assert verdict(good) == "supported"
    assert verdict({**good, "error_without": [0.5] * 24}) == "refuted"
    assert verdict({**good, "plain": {"whole_error": 0.08, "error_without": [0.1] * 6}}) == "refuted"
    assert verdict({**good, "loss_without_smallest_quarter": 1.0}) == "refuted"
