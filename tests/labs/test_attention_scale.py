from __future__ import annotations

import math
from copy import deepcopy
from functools import partial
from itertools import product
from typing import Any

import pytest
import torch

from descend import labs
from descend.errors import Mistake
from descend.labs import attention_scale
from descend.labs._evidence import judge_seed
from descend.labs.attention_scale import CLAIM, SIZES, figure, gradient_norm, look, measure
from descend.ops.attention.dot_product import scores, unscaled_attention
from tests.close import close

verdict = partial(judge_seed, attention_scale)

SLUG = "attention-scaling-analysis"


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    return measure(seed=0, budget=0.2)


@pytest.mark.system(SLUG)
def test_variance_is_d_k_exactly() -> None:
    """DLN-B.35, VOM-A.85: over all pairs of vectors of ±1 the variance of q·k is d_k, and 1 after scaling."""
    for d_k in (4, 6):
        v = torch.tensor(list(product((-1.0, 1.0), repeat=d_k)), dtype=torch.float64)
        dots = (v @ v.T).flatten()
        close(dots.var(correction=0), torch.tensor(float(d_k), dtype=torch.float64))
        close(scores(v, v).flatten().var(correction=0), torch.tensor(1.0, dtype=torch.float64))


@pytest.mark.system(SLUG)
def test_measured_variance_agrees_with_the_closed_form(numbers: dict[str, Any]) -> None:
    """Within 4 standard errors of d_k. A query's 64 scores share q, so the error of the mean of n queries is
    √((2 d_k + 2 (d_k² + 2 d_k)/64) / n); the lab's own estimate of it must agree."""
    n, keys = numbers["queries"], numbers["keys"]
    for d_k, variance, error in zip(SIZES, numbers["variance"], numbers["errors"]["variance"], strict=True):
        exact = math.sqrt((2 * d_k + 2 * (d_k**2 + 2 * d_k) / keys) / n)
        assert abs(variance - d_k) < 4 * exact
        assert 0.5 < error / exact < 2


@pytest.mark.system(SLUG)
def test_entropies_at_512(numbers: dict[str, Any]) -> None:
    """MF-18.1.3-variance: 64 keys, d_k = 512: 0.1757 without the scale, 3.6904 with it (500 queries there)."""
    at = SIZES.index(512)
    assert abs(numbers["entropy"][at] - 0.1757) < 0.07  # about 4 standard errors of both together
    assert abs(numbers["scaled_entropy"][at] - 3.6904) < 0.05
    close(numbers["entropy_of_equal_weights"], math.log(64))


@pytest.mark.system(SLUG, "ranges")
@pytest.mark.system(SLUG)
def test_ranges_of_the_book_do_not_belong_together(numbers: dict[str, Any]) -> None:
    """MF-18.7.3-ranges, inconsistent: ±30 is 1.33 standard deviations at d_k = 512, and exceeded by 18.5%."""
    expected = math.erfc(30 / math.sqrt(512) / math.sqrt(2))
    close(expected, torch.tensor(0.184897599, dtype=torch.float64))
    assert abs(numbers["share_over_30_at_512"] - expected) < 0.02
    close([30 / math.sqrt(512), 3 * math.sqrt(512)], torch.tensor([1.325825215, 67.88225099], dtype=torch.float64))


@pytest.mark.system(SLUG, "saturation")
@pytest.mark.system(SLUG)
def test_saturation() -> None:
    """VOM-8.4-saturation: scores 100, 0, 0. S940-5.1: p(1-p) of two scores one standard deviation √d_k apart."""
    key = torch.tensor([[100.0], [0.0], [0.0]], dtype=torch.float64)
    a = unscaled_attention(torch.ones(1, 1, dtype=torch.float64), key, key)[1]
    close(a, torch.tensor([[1.0, 3.720075976e-44, 3.720075976e-44]], dtype=torch.float64))
    close(a[0, 1] / 3.720075976e-44, torch.tensor(1.0, dtype=torch.float64))
    for d_k, printed in ((4, 0.1049935854), (64, 0.0003352376708), (512, 1.489490753e-10)):
        gap = torch.tensor([[math.sqrt(d_k)], [0.0]], dtype=torch.float64)
        p = unscaled_attention(torch.ones(1, 1, dtype=torch.float64), gap, gap)[1][0]
        close(float(p[0] * p[1]) / printed, 1.0)  # as float32: the recomputed value lost digits in 1 - p


@pytest.mark.system(SLUG, "gradient-norm")
@pytest.mark.system(SLUG)
def test_gradient_norm_is_the_norm_of_the_jacobian() -> None:
    s = torch.randn(5, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    rows = [torch.autograd.functional.jacobian(lambda x: x.softmax(-1), row).norm() for row in s]
    close(gradient_norm(s.softmax(-1)), torch.stack(rows))
    close(gradient_norm(torch.tensor([[0.5, 0.5]])), torch.tensor([0.5]))
    assert gradient_norm(torch.tensor([[1.0, 0.0]])).item() == 0


def test_the_numbers_depend_on_the_seed_alone() -> None:
    a, b = (look(3, 8, torch.Generator().manual_seed(5))["entropy"] for _ in range(2))
    assert torch.equal(a, b)
    assert not torch.equal(a, look(3, 8, torch.Generator().manual_seed(6))["entropy"])


@pytest.mark.system(SLUG, "simulation")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_claim_is_supported(seed: int, numbers: dict[str, Any]) -> None:
    assert verdict(measure(seed, budget=0.2) if seed else numbers) == "supported"
    assert "√d_k" in CLAIM


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("variance", lambda v: [x * 1.5 for x in v]),  # scores that grow faster than d_k
        ("entropy", lambda v: [3.7 for _ in v]),  # a softmax that does not saturate
        ("gradient", lambda v: [0.18 for _ in v]),  # gradients that do not vanish
        ("scaled_entropy", lambda v: [x / (i + 1) for i, x in enumerate(v)]),  # a scale that does not cure it
        ("scaled_gradient", lambda v: [x / (i + 1) for i, x in enumerate(v)]),
    ],
)
def test_doctored_numbers_refute(numbers: dict[str, Any], name: str, change: Any) -> None:
    doctored = deepcopy(numbers)
    doctored[name] = change(doctored[name])
    assert verdict(doctored) == "refuted"


def test_noise_leaves_it_open(numbers: dict[str, Any]) -> None:
    noisy = deepcopy(numbers)
    noisy["errors"]["variance"] = [0.2 * d for d in SIZES]
    assert verdict(noisy) == "open"


def test_figure_has_three_panels(numbers: dict[str, Any]) -> None:
    panels = figure(numbers).axes
    assert len(panels) == 3
    drawn = [line for line in panels[0].get_lines() if line.get_label() == "q·k"]
    close(drawn[0].get_ydata(), numbers["variance"])


def test_labs_are_found_by_name() -> None:
    assert "attention-scale" in labs.names()
    assert labs.claim("attention-scale") == CLAIM
    assert labs.open_lab("attention_scale") is labs.open_lab("attention-scale")
    with pytest.raises(Mistake, match="Did you mean 'attention-scale'"):
        labs.open_lab("atention-scale")
