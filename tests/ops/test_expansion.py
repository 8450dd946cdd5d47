"""Lenses: rank and nullity by shape, and the lift that makes red-blue-red separable."""

from __future__ import annotations

import pytest
import torch
from sklearn.svm import SVC
from torch import Tensor

from descend.ops.expansion import expand, expand_relu, lens, with_squares
from descend.theory.perceptron import separable


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.system("matrix-shape-lenses")
@pytest.mark.system("matrix-shape-lenses", "report")
@pytest.mark.parametrize(
    ("w", "kind", "rank", "nullity"),
    [
        (noise(8, 64), "compressor", 8, 56),
        (noise(64, 8), "expander", 8, 0),
        (noise(16, 16), "mixer", 16, 0),
        (noise(16, 3) @ noise(3, 16), "collapser", 3, 13),
        (noise(8, 2) @ noise(2, 64), "compressor", 2, 62),
        (noise(64, 2) @ noise(2, 8), "expander", 2, 6),
    ],
)
def test_kind_rank_nullity(w: Tensor, kind: str, rank: int, nullity: int) -> None:
    found = lens(w)
    assert (found.kind, found.rank, found.nullity) == (kind, rank, nullity)
    assert found.rank == int(torch.linalg.matrix_rank(w))
    assert (found.outputs, found.inputs) == w.shape


@pytest.mark.system("matrix-shape-lenses")
@pytest.mark.system("matrix-shape-lenses", "red-blue-red")
def test_red_blue_red_needs_a_nonlinearity() -> None:
    """VOM 1.6.2: no threshold parts the points on a line, none in a linear expansion of it; x² and ReLU do."""
    x = torch.tensor([-2.0, -1.5, 0.0, 0.3, 1.5, 2.0], dtype=torch.float64)[:, None]
    red = torch.tensor([1, 1, 0, 0, 1, 1])
    w, b = noise(64, 1, seed=1), noise(64, seed=2)
    assert not separable(x, 2 * red - 1)
    assert not separable(expand(x, w, b), 2 * red - 1)
    assert separable(with_squares(x), 2 * red - 1)
    assert separable(expand_relu(x, w, b), 2 * red - 1)
    assert separable(x, torch.tensor([-1, -1, -1, 1, 1, 1]))


@pytest.mark.system("matrix-shape-lenses")
@pytest.mark.system("matrix-shape-lenses", "expander-relu")
def test_expander_and_relu_untangle_two_rings() -> None:
    """Points of a disk inside a ring: wider ReLU expanders separate more; the linear ones never do."""
    angle = torch.linspace(0, 6.2, 40, dtype=torch.float64)
    radius = torch.where(torch.arange(40) % 2 == 0, 1.0, 2.0).double()
    x = radius[:, None] * torch.stack([angle.cos(), angle.sin()], -1)
    y = torch.arange(40) % 2
    share = []
    for width in (2, 4, 8, 32):
        draws = [(noise(width, 2, seed=s), noise(width, seed=s + 50)) for s in range(10)]
        share.append(sum(separable(expand_relu(x, w, b), 2 * y - 1) for w, b in draws) / 10)
        assert not any(separable(expand(x, w, b), 2 * y - 1) for w, b in draws)
    assert share == sorted(share)
    assert (share[0], share[-1]) == (0.0, 1.0)


@pytest.mark.system("matrix-shape-lenses")
def test_separability_agrees_with_a_support_vector_machine() -> None:
    for seed in range(8):
        x, w = noise(12, 2, seed=seed), noise(2, seed=seed + 100)
        y = (x @ w > 0.1).long()
        if seed % 2:
            y[x[:, 0].argmax()] = 1 - y[x[:, 0].argmax()]
        machine = SVC(kernel="linear", C=1e4).fit(x.numpy(), y.numpy())
        assert separable(x, 2 * y - 1) is (machine.score(x.numpy(), y.numpy()) == 1.0)
