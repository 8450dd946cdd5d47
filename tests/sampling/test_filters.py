"""Temperature, top-k, top-p and min-p: the books' numbers, transformers' filters, and frequencies of draws."""

from __future__ import annotations

import pytest
import scipy.stats
import torch
from torch import Tensor

from descend.errors import Mistake
from descend.sampling.filters import GREEDY, TokenSampler, min_p, temperature, top_k, top_p
from tests.close import close

transformers = pytest.importorskip("transformers")
warpers = transformers.generation.logits_process

# Two next-token distributions that satisfy every statement of the section (its figure is missing).
FLAT = torch.tensor([0.16, 0.14, 0.11, 0.09, 0.09, 0.09, 0.09, 0.09, 0.08, 0.06], dtype=torch.float64)
SHARP = torch.tensor([0.6, 0.3, 0.07, 0.01, 0.005, 0.005, 0.004, 0.003, 0.002, 0.001], dtype=torch.float64)


def logits(rows: int = 5, v: int = 23) -> Tensor:
    return 2 * torch.randn(rows, v, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.system("temperature-sampling")
@pytest.mark.system("temperature-sampling", "values")
@pytest.mark.parametrize(
    ("t", "expected"),
    [
        (0.1, [0.9999546001, 4.539786861e-05, 2.061060046e-09]),
        (1.0, [0.6652409558, 0.2447284711, 0.09003057317]),
        (2.0, [0.5064803911, 0.3071958857, 0.1863237232]),
    ],
)
def test_temperature_flattens_or_sharpens(t: float, expected: list[float]) -> None:
    z = torch.tensor([2.0, 1.0, 0.0], dtype=torch.float64)
    close(temperature(z, t).softmax(-1), torch.tensor(expected, dtype=torch.float64))


@pytest.mark.system("temperature-sampling")
@pytest.mark.system("temperature-sampling", "limits")
def test_temperature_limits() -> None:
    p = torch.tensor([0.5, 0.4, 0.1], dtype=torch.float64)
    half = torch.tensor([0.5952380952, 0.380952381, 0.02380952381], dtype=torch.float64)
    hot = torch.tensor([0.333333537, 0.3333334626, 0.3333330005], dtype=torch.float64)
    close(temperature(p.log(), 0.5).softmax(-1), half)
    close(temperature(p.log(), 1e6).softmax(-1), hot)
    close(temperature(p.log(), 1.0).softmax(-1), p)
    close(temperature(p.log(), 0.01).softmax(-1)[0], torch.tensor(0.9999999998, dtype=torch.float64))
    assert GREEDY.draw(p.log()[None]).item() == 0  # T = 0 is the argmax, not a division by zero


@pytest.mark.system("temperature-sampling")
@pytest.mark.system("temperature-sampling", "entropy")
def test_entropy_grows_with_temperature() -> None:
    z, entropies = torch.tensor([2.0, 1.0, 0.0], dtype=torch.float64), []
    for t in (0.1, 1.0, 2.0):
        p = temperature(z, t).softmax(-1)
        entropies.append(-(p * p.log()).sum())
    close(torch.stack(entropies), torch.tensor([0.0004994208676, 0.8323955818, 1.020191337], dtype=torch.float64))


@pytest.mark.system("top-k-sampling")
@pytest.mark.system("top-k-sampling", "filter")
def test_top_k_keeps_six_of_ten() -> None:
    for p, mass in ((FLAT, 0.68), (SHARP, 0.99)):
        kept = top_k(p.log(), 6).softmax(-1)
        assert (kept > 0).sum() == 6
        close(p[kept > 0].sum(), torch.tensor(mass, dtype=torch.float64))
    expected = [0.2352941176, 0.2058823529, 0.1617647059, 0.1323529412, 0.1323529412, 0.1323529412]
    close(top_k(FLAT.log(), 6).softmax(-1).topk(6).values, torch.tensor(expected, dtype=torch.float64))


@pytest.mark.system("top-k-sampling")
@pytest.mark.system("top-k-sampling", "filter")
@pytest.mark.parametrize("k", [1, 2, 7, 23, 100])
def test_top_k_is_transformers(k: int) -> None:
    z = logits()
    close(top_k(z, k).softmax(-1), warpers.TopKLogitsWarper(k)(torch.empty(0), z).softmax(-1))


@pytest.mark.system("top-k-sampling")
@pytest.mark.system("top-k-sampling", "limits")
def test_top_k_limits() -> None:
    z = logits()
    assert torch.equal(top_k(z, 1).softmax(-1).argmax(-1), z.argmax(-1))
    assert torch.equal(top_k(z, 23), z)
    assert (top_k(torch.zeros(1, 8), 3) == 0).sum() == 3  # of equal logits only as many as asked for


@pytest.mark.system("top-p-sampling")
@pytest.mark.system("top-p-sampling", "filter")
def test_top_p_keeps_nine_or_three() -> None:
    for p, count, mass in ((FLAT, 9, 0.94), (SHARP, 3, 0.97)):
        kept = top_p(p.log(), 0.92).softmax(-1)
        assert (kept > 0).sum() == count  # grows for flat, shrinks for sharp distributions
        close(p[kept > 0].sum(), torch.tensor(mass, dtype=torch.float64))


@pytest.mark.system("top-p-sampling")
@pytest.mark.system("top-p-sampling", "exceeds")
def test_top_p_must_be_exceeded() -> None:
    """Two of four equal tokens reach 0.5 and do not exceed it: the books keep three, transformers two."""
    z = torch.zeros(1, 4, dtype=torch.float64)
    assert (top_p(z, 0.5) == 0).sum() == 3
    assert (warpers.TopPLogitsWarper(0.5)(torch.empty(0), z) == 0).sum() == 2
    assert (top_p(z, 0.49) == 0).sum() == 2


@pytest.mark.system("top-p-sampling")
@pytest.mark.system("top-p-sampling", "exceeds")
@pytest.mark.parametrize("p", [0.05, 0.3, 0.8, 0.99])
def test_top_p_is_transformers_without_ties(p: float) -> None:
    z = logits()
    close(top_p(z, p).softmax(-1), warpers.TopPLogitsWarper(p)(torch.empty(0), z).softmax(-1))


@pytest.mark.system("top-p-sampling")
@pytest.mark.system("top-p-sampling", "limits")
def test_top_p_limits() -> None:
    z = logits()
    kept = top_p(z, 0.0)
    assert torch.equal(kept.argmax(-1), z.argmax(-1))
    assert (kept.isfinite().sum(-1) == 1).all()
    assert torch.equal(top_p(z, 1.0), z)


@pytest.mark.parametrize("m", [0.02, 0.3, 1.0])
def test_min_p_is_transformers(m: float) -> None:
    z = logits()
    close(min_p(z, m).softmax(-1), warpers.MinPLogitsWarper(m)(torch.empty(0), z).softmax(-1))


@pytest.mark.system("top-p-sampling")
@pytest.mark.system("top-p-sampling", "order")
@pytest.mark.system("top-k-sampling")
def test_top_k_comes_before_top_p() -> None:
    """The first two of FLAT, renormalised, are 0.53 and 0.47: one of them exceeds 0.52. Of all ten it takes five."""
    sampler = TokenSampler(top_k=2, top_p=0.52)
    assert sampler.filter(FLAT.log()).isfinite().sum() == 1
    assert top_k(top_p(FLAT.log(), 0.52), 2).isfinite().sum() == 2


def frequencies(sampler: TokenSampler, z: Tensor, draws: int = 20_000) -> Tensor:
    drawn = sampler.draw(z.expand(draws, -1), torch.Generator().manual_seed(7))
    return torch.bincount(drawn, minlength=len(z)).double()


def chance(counts: Tensor, p: Tensor) -> float:
    """How probable a deviation at least this large is, if the draws come from p (chi-square)."""
    assert not counts[p == 0].any()
    return float(scipy.stats.chisquare(counts[p > 0].numpy(), (counts.sum() * p[p > 0]).numpy()).pvalue)


SAMPLERS = {
    "ancestral": (TokenSampler(), FLAT),
    "temperature": (TokenSampler(temperature=0.5), FLAT**2 / (FLAT**2).sum()),
    "top-k": (TokenSampler(top_k=3), torch.cat([FLAT[:3] / FLAT[:3].sum(), torch.zeros(7)])),
    "top-p": (TokenSampler(top_p=0.85), torch.cat([FLAT[:8] / FLAT[:8].sum(), torch.zeros(2)])),
    "min-p": (TokenSampler(min_p=0.6), torch.cat([FLAT[:3] / FLAT[:3].sum(), torch.zeros(7)])),
}


@pytest.mark.system("ancestral-sampling")
@pytest.mark.system("ancestral-sampling", "frequencies")
@pytest.mark.system("temperature-sampling")
@pytest.mark.system("temperature-sampling", "frequencies")
@pytest.mark.system("top-k-sampling")
@pytest.mark.system("top-k-sampling", "frequencies")
@pytest.mark.system("top-p-sampling")
@pytest.mark.system("top-p-sampling", "frequencies")
@pytest.mark.parametrize("name", SAMPLERS)
def test_frequencies_are_the_probabilities(name: str) -> None:
    sampler, p = SAMPLERS[name]
    counts = frequencies(sampler, FLAT.log())
    assert chance(counts, p) > 0.01
    tilted = p * torch.tensor([1.1, 0.9] * 5)
    assert chance(counts, tilted / tilted.sum()) < 1e-4  # the test would notice a tenth


@pytest.mark.system("ancestral-sampling")
@pytest.mark.system("ancestral-sampling", "seed")
def test_the_seed_decides() -> None:
    z = logits(rows=50)
    first, again, other = (TokenSampler().draw(z, torch.Generator().manual_seed(s)) for s in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"temperature": -1.0}, "temperature is -1.0: give 0"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"top_k": -5}, "top_k is -5"),
        ({"top_p": 1.5}, "top_p is 1.5: give a probability"),
        ({"min_p": 2.0}, "min_p is 2.0"),
    ],
)
def test_impossible_values_are_named(values: dict[str, float], message: str) -> None:
    with pytest.raises(Mistake, match=message):
        TokenSampler(**values)  # type: ignore[arg-type]
