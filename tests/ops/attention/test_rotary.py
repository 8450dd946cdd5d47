"""Rotations of pairs: matrix and elementwise form, distances, and the layout of halves."""

from __future__ import annotations

import pytest
import torch

from descend.nn.attention.rotary import rotate
from descend.ops.attention.rotary import frequencies, halves, rotate_pairs, rotation
from tests.close import close


def angles(position: float, size: int = 8) -> torch.Tensor:
    return position * frequencies(size, dtype=torch.float64)


@pytest.mark.system("rope", "forms", "norm")
@pytest.mark.system("rope")
def test_matrix_and_elementwise_form_are_one() -> None:
    x = torch.randn(3, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    a = torch.stack([angles(p) for p in (0.0, 3.0, 17.0)])
    turned = rotate_pairs(x, a.cos(), a.sin())
    close(turned, (rotation(a) @ x[..., None])[..., 0])
    close(turned.norm(dim=-1), x.norm(dim=-1))
    assert torch.equal(turned[0], x[0])  # position 0 is the identity
    close(rotation(a) @ rotation(a).mT, torch.eye(8, dtype=torch.float64).expand(3, 8, 8))


@pytest.mark.system("rope", "relative")
@pytest.mark.system("rope")
def test_scores_know_the_distance_alone() -> None:
    q, k = torch.randn(2, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))

    def score(m: float, n: float) -> torch.Tensor:
        return (rotation(angles(m)) @ q) @ (rotation(angles(n)) @ k)

    close(score(3, 7), score(103, 107))
    close(score(3, 7), q @ rotation(angles(4)) @ k)  # R_{n−m}; the printed R_{m−n} gives another number
    assert not torch.isclose(score(3, 7), q @ rotation(angles(-4)) @ k)


@pytest.mark.system("rope", "halves")
@pytest.mark.system("rope")
def test_halves_are_pairs_in_another_order() -> None:
    x = torch.randn(1, 5, 2, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    a = torch.arange(5.0, dtype=torch.float64)[:, None] * frequencies(8, dtype=torch.float64)
    pairs = rotate_pairs(x, a.cos()[:, None], a.sin()[:, None])
    close(rotate(x[..., halves(8)], a.cos(), a.sin()), pairs[..., halves(8)])


@pytest.mark.system("rope")
def test_gradients() -> None:
    x = torch.randn(2, 4, dtype=torch.float64, requires_grad=True)
    a = angles(3.0, 4)
    assert torch.autograd.gradcheck(lambda x: rotate_pairs(x, a.cos(), a.sin()), x)
