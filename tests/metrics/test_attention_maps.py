from __future__ import annotations

import math

import pytest
import torch

from descend.metrics.attention_maps import distance, entropy, mass_at, pattern, pattern_scores, report
from descend.ops.attention.dot_product import weigh
from tests.close import close

SLUG = "attention-maps-analysis"
N = 12
SYNTHETIC = {
    "diagonal": torch.eye(N),
    "near": sum(torch.diag(torch.ones(N - abs(k)), k) for k in (-1, 0, 1)),
    "stripe": torch.zeros(N, N).index_fill(1, torch.tensor([4]), 1.0),
    "block": torch.block_diag(*[torch.ones(4, 4)] * 3),
    "sparse": torch.eye(N)[(5 * torch.arange(N) + 3) % N],
    "spread": torch.ones(N, N),
}


def noisy(kind: str) -> torch.Tensor:
    a = SYNTHETIC[kind] + 0.02 * torch.rand(N, N, generator=torch.Generator().manual_seed(0))
    return a / a.sum(-1, keepdim=True)


@pytest.mark.system(SLUG, "patterns")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("kind", SYNTHETIC)
def test_synthetic_patterns_are_recognised(kind: str) -> None:
    expected = "diagonal" if kind == "near" else kind
    assert pattern(noisy(kind)) == expected, pattern_scores(noisy(kind))


@pytest.mark.system(SLUG, "patterns")
@pytest.mark.system(SLUG)
def test_scores_are_0_for_equal_weights_and_1_for_the_pure_pattern() -> None:
    for value in pattern_scores(torch.full((N, N), 1 / N)).values():
        assert abs(value) < 1e-6
    for kind in ("diagonal", "stripe", "block", "sparse"):
        pure = SYNTHETIC[kind] / SYNTHETIC[kind].sum(-1, keepdim=True)
        assert abs(pattern_scores(pure)[kind] - 1) < 1e-5


@pytest.mark.system(SLUG, "report")
@pytest.mark.system(SLUG)
def test_report_of_the_cat_sat() -> None:
    a = torch.tensor([[0.70, 0.15, 0.15], [0.10, 0.60, 0.30], [0.05, 0.75, 0.20]], dtype=torch.float64)
    found = report(a, ["The", "cat", "sat"])
    close(found.row_sums, torch.ones(3, dtype=torch.float64))
    assert (found.weight("sat", "cat"), found.weight("cat", "sat")) == (0.75, 0.3)
    close(found.diagonal_mass, torch.tensor(0.5, dtype=torch.float64))
    close(found.asymmetry, torch.tensor(math.sqrt(2 * (0.05**2 + 0.1**2 + 0.45**2)), dtype=torch.float64))
    assert found.large.tolist() == [1, 1, 1]
    table = found.table().splitlines()
    assert len(table) == 4
    assert table[0].split() == ["The", "cat", "sat"]
    assert table[3].split() == ["sat", "0.050", "0.750", "0.200"]
    with pytest.raises(ValueError, match="2 tokens"):
        report(a, ["The", "cat"])


@pytest.mark.system("attention-head-and-layer-probes", "distance")
@pytest.mark.system(SLUG, "report")
@pytest.mark.system(SLUG)
def test_entropy_and_distance() -> None:
    equal = weigh(torch.zeros(4, 4), torch.eye(4))[1]
    close(equal, torch.full((4, 4), 0.25))
    close(entropy(equal), torch.full((4,), math.log(4)))
    assert entropy(torch.eye(4)).abs().max() == 0
    close(distance(equal), torch.tensor([6.0, 4.0, 4.0, 6.0]) / 4)
    close(mass_at(torch.eye(3), torch.tensor([0, 1, 0])), torch.tensor([1.0, 1.0, 0.0]))
