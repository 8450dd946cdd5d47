"""Four kinds of attention: matched sizes, caches as their decoders keep them, and what the verdict follows."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch

from descend.labs import attention_caches
from descend.labs._evidence import judge_seed
from descend.labs.attention_caches import DEPTH, HEADS, KV_HEADS, SIZE, cached, count, figure, match

verdict = partial(judge_seed, attention_caches)

SLUG = "multi-head-latent-attention"
KINDS = [*KV_HEADS, "MLA"]


@pytest.mark.system(SLUG)
def test_parameters_are_matched_and_caches_are_not() -> None:
    torch.manual_seed(0)
    sizes = {kind: count(match(kind, 100)) for kind in KINDS}
    assert max(sizes.values()) < 1.01 * min(sizes.values())
    assert {kind: cached(kind) for kind in KINDS} == {
        "MHA": 2 * HEADS * SIZE * DEPTH, "GQA": 4 * SIZE * DEPTH, "MQA": 2 * SIZE * DEPTH, "MLA": 9 * SIZE * DEPTH // 2,
    }  # fmt: skip


def good() -> dict[str, Any]:
    return {"attention": KINDS, "loss": [4.0, 4.1, 4.2, 3.99], "cache": [256, 64, 32, 72], "steps": 200}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "supported"),
        ({"steps": 10}, "open"),
        ({"loss": [4.0, 4.0, 4.0, 4.2]}, "refuted"),
        ({"cache": [256, 64, 32, 200]}, "refuted"),
    ],
)
def test_verdicts(change: dict[str, Any], expected: str) -> None:
    assert verdict({**good(), **change}) == expected


def test_figure() -> None:
    assert [text.get_text() for text in figure(good()).axes[0].texts] == KINDS
