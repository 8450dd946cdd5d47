from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import pytest
import torch

from descend.labs import attention_depth
from descend.labs._evidence import judge_seed
from descend.labs.attention_depth import LINEAR, Reader, figure, measure, outside_span, texts
from tests.close import close

verdict = partial(judge_seed, attention_depth)

SLUG = "attention-properties"
BENT: dict[str, Any] = {
    "steps": 300, "depth": [1, 2, 4], "text_without": [0.6, 0.6, 0.7], "single_without": [0.5, 0.6, 0.75],
    "text_with": [1.0, 0.99, 1.0], "single_with": [1.0, 1.0, 1.0],
    "outside_span": {"without": [1e-16] * 6, "with": [0.5] * 6},
}  # fmt: skip


@pytest.mark.system(SLUG)
def test_attention_stays_in_the_span_at_any_depth_and_feed_forward_leaves_it() -> None:
    assert max(outside_span(0, "without")) < 1e-12
    assert min(outside_span(0, "with")) > 0.1


@pytest.mark.system(SLUG)
def test_without_feed_forward_a_single_vector_is_mapped_linearly() -> None:
    """f(u) + f(v) = f(u + v − w) + f(w) for an affine f, at any depth; with feed-forward parts it is not."""
    torch.manual_seed(0)
    u, v, w = torch.randn(3, 1, 1, 5)
    with torch.no_grad():
        flat, bent = Reader(4, "without"), Reader(4, "with")
        close(flat(u) + flat(v), flat(u + v - w) + flat(w))
        assert (bent(u) + bent(v) - bent(u + v - w) - bent(w)).abs().item() > 1e-3


def test_a_half_space_tells_six_of_eight_products() -> None:
    """Every half-space of the cube of three signs is cut by one of these weights."""
    x = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=3)))
    y = x.prod(1) > 0
    weights = torch.tensor(list(itertools.product(range(-2, 3), repeat=3))).float()
    right = max(
        ((x @ w + b > 0) == y).double().mean().item() for w in weights for b in torch.arange(-5.5, 6.0).tolist()
    )
    assert right == LINEAR


def test_a_short_measurement() -> None:
    x, y = texts(50, 8, torch.Generator().manual_seed(0))
    assert torch.equal(y > 0, x[..., 0] * x[..., 1] * x[..., 2] > 0)
    numbers = measure(seed=0, budget=0.1)
    assert verdict(numbers) == "open"
    assert numbers == measure(seed=0, budget=0.1)
    assert len(figure(numbers).axes) == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "supported"),
        ({"steps": 100}, "open"),
        ({"text_with": [0.8, 1.0, 1.0]}, "open"),
        ({"text_without": [0.6, 0.9, 0.6]}, "refuted"),
        ({"single_without": [0.6, 0.9, 0.6]}, "refuted"),
        ({"outside_span": {"without": [1e-3] * 6, "with": [0.5] * 6}}, "refuted"),
        ({"outside_span": {"without": [1e-16] * 6, "with": [1e-16] * 6}}, "refuted"),
    ],
)
def test_the_verdict_reads_every_part(change: dict[str, Any], said: str) -> None:
    assert verdict({**BENT, **change}) == said
