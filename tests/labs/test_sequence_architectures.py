"""The comparison of sequence layers: exact counts, the decay of gradients, and a verdict that reads the numbers."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
import torch

from descend.labs import sequence_architectures
from descend.labs._evidence import judge_seed
from descend.labs.sequence_architectures import (
    CLAIM,
    DISTANCES,
    LENGTHS,
    WIDTH,
    build,
    count_flops,
    figure,
    gradient,
    growth,
    kept_numbers,
    measure,
)
from tests.close import close

verdict = partial(judge_seed, sequence_architectures)

SLUG = "sequence-architecture-comparison"


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    return measure(seed=0, budget=0.05)


@pytest.mark.system(SLUG)
def test_exact_parts(numbers: dict[str, Any]) -> None:
    """2 n d² and 2 n² d multiplications are equal at n = d; FLOPs are twice that."""
    rnn, lstm, attn = (numbers[name] for name in ("rnn", "lstm", "attention"))
    assert rnn["flops_at_d"] == attn["flops_at_d"] == 4 * WIDTH**3
    assert lstm["flops_at_d"] == 16 * WIDTH**3
    close([rnn["kept_exponent"], lstm["kept_exponent"], numbers["fused_kept_exponent"]], [1.0, 1.0, 1.0])
    assert attn["kept_exponent"] > 1.8
    assert (rnn["path"], attn["path"]) == (LENGTHS[-1] - 1, 1)
    assert (lstm["steps"], attn["steps"]) == (LENGTHS[-1], 1)


@pytest.mark.system(SLUG, "crossover")
@pytest.mark.system(SLUG)
def test_costs_cross_at_n_equal_to_d() -> None:
    rnn, attn = build("rnn", 0), build("attention", 0)
    assert count_flops(attn, WIDTH - 1) < count_flops(rnn, WIDTH - 1)
    assert count_flops(attn, WIDTH + 1) > count_flops(rnn, WIDTH + 1)


@pytest.mark.system(SLUG)
def test_gradients_decay_in_recurrence_alone(numbers: dict[str, Any]) -> None:
    rnn, lstm, attn = (numbers[name] for name in ("rnn", "lstm", "attention"))
    assert rnn["factor_a_step"] < lstm["factor_a_step"] < 0.95 < attn["factor_a_step"]
    assert rnn["gradient"][-1] < 1e-15 < lstm["gradient"][-1] < 1e-4 < attn["gradient"][-1]
    for name in ("rnn", "lstm", "attention"):
        assert gradient(build(name, 3), DISTANCES[0], 3) == gradient(build(name, 3), DISTANCES[0], 3)


@pytest.mark.system(SLUG, "gradient")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_gradient_over_the_distance_on_every_seed(seed: int) -> None:
    """‖∂y_n/∂x_1‖: a constant factor a step in recurrence, about 1/n in attention."""
    norms = {name: [gradient(build(name, seed), n, seed) for n in DISTANCES] for name in ("rnn", "lstm", "attention")}
    for name in ("rnn", "lstm"):
        assert all(later < 0.5 * earlier for earlier, later in pairwise(norms[name])), name
    far = DISTANCES[-1] / DISTANCES[0]
    assert norms["attention"][-1] > 0.2 * norms["attention"][0] / far
    assert norms["rnn"][-1] < 1e-6 * norms["lstm"][-1] < 1e-3 * norms["attention"][-1]


@pytest.mark.system(SLUG)
def test_attention_keeps_its_weights() -> None:
    """n² weights and n d inputs; growth leaves out what does not depend on n."""
    n = 64
    assert kept_numbers(build("attention", 0), n) >= n * n + n * WIDTH
    close(growth([7 + n for n in LENGTHS]), 1.0)
    close(growth([7 + n * n for n in LENGTHS]), 2.0)
    assert kept_numbers(lambda x: x.detach(), n) == 0


@pytest.mark.parametrize(
    ("name", "key", "value", "expected"),
    [
        ("rnn", "factor_a_step", 0.9, "refuted"),
        ("attention", "factor_a_step", 0.5, "refuted"),
        ("attention", "kept_exponent", 1.0, "refuted"),
        ("rnn", "flops_at_d", 1, "refuted"),
        ("rnn", "training_seconds", [1e-9], "refuted"),
        ("lstm", "training_seconds", [1.2], "open"),
        ("rnn", "token_seconds", [1.0, 99.0], "refuted"),
        ("rnn", "token_seconds", [1.0, 1.7], "open"),
        ("attention", "token_seconds", [1.0, 1.1], "open"),
        ("lstm", "path", 99, "supported"),
    ],
)
def test_verdict_reads_the_numbers(numbers: dict[str, Any], name: str, key: str, value: Any, expected: str) -> None:
    """The clock is doctored first: attention 1 s, the others 9 s, tokens in ms; then one number is moved."""
    doctored = deepcopy(numbers)
    for kind, seconds, token in (("rnn", 9.0, 1.0), ("lstm", 9.0, 1.0), ("attention", 1.0, 8.0)):
        doctored[kind] |= {"training_seconds": [seconds], "token_seconds": [1e-3, 1e-3 * token]}
    assert verdict(doctored) == "supported"
    doctored[name][key] = value
    assert verdict(doctored) == expected
    assert "n = d" in CLAIM


def test_figure(numbers: dict[str, Any]) -> None:
    panels = figure(numbers).axes
    assert [len(p.get_lines()) for p in panels] == [3, 4, 3]
    close(torch.tensor(panels[1].get_lines()[2].get_ydata()), torch.tensor(numbers["attention"]["kept"]))
