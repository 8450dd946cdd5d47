"""The symmetric contrastive loss: closed forms, torch's cross-entropy, symmetry, gradients, equal captions."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from descend.errors import Mistake
from descend.losses.contrastive import grouped_n_pair, n_pair, similarity
from tests.close import close


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.system("clip-contrastive-loss")
@pytest.mark.system("clip-contrastive-loss", "closed-form", "temperature")
@pytest.mark.parametrize(("n", "tau", "known"), [(3, 1.0, 0.5514), (3, 0.07, None), (8, 0.5, None)])
def test_orthonormal_pairs_have_the_closed_form(n: int, tau: float, known: float | None) -> None:
    """log(1 + (N − 1) e^(−1/τ)); N = 3, τ = 1: 0.5514 (DLN-B.92)."""
    turn, _ = torch.linalg.qr(normal(n + 2, n + 2))
    loss = n_pair(similarity(5 * turn[:n], 0.3 * turn[:n], tau)).mean()  # lengths do not matter
    close(loss, torch.tensor(math.log1p((n - 1) * math.exp(-1 / tau)), dtype=torch.float64))
    if known is not None:
        assert round(float(loss), 4) == known


@pytest.mark.system("clip-contrastive-loss")
@pytest.mark.system("clip-contrastive-loss", "limits")
def test_equal_scores_and_perfect_matches() -> None:
    """MF-B.57: log B for equal scores, 0 in the limit of a perfect match; random vectors are near log N."""
    close(n_pair(torch.full((7, 7), 0.3, dtype=torch.float64)), torch.full((7,), math.log(7), dtype=torch.float64))
    assert n_pair(similarity(torch.eye(7), torch.eye(7), 0.01)).max() < 1e-6
    images, texts = normal(256, 512), normal(256, 512, seed=1)
    assert abs(float(n_pair(similarity(images, texts)).mean()) - math.log(256)) < 0.01


@pytest.mark.system("clip-contrastive-loss")
@pytest.mark.system("clip-contrastive-loss", "symmetric", "temperature")
@settings(max_examples=15, derandomize=True, deadline=None)
@given(st.integers(1, 6), st.integers(1, 5), st.floats(0.05, 3.0), st.integers(0, 99))
def test_torch_and_symmetry(n: int, d: int, tau: float, seed: int) -> None:
    """Rows and columns by torch's own losses; images and texts can be swapped; the order of pairs does not matter."""
    images, texts = normal(n, d, seed=seed), normal(n, d, seed=seed + 100)
    ours = n_pair(similarity(images, texts, tau))
    cos = F.cosine_similarity(images[:, None], texts[None], dim=-1) / tau
    here = torch.arange(n)
    theirs = (F.cross_entropy(cos, here, reduction="none") + F.cross_entropy(cos.T, here, reduction="none")) / 2
    assert torch.allclose(ours, theirs, rtol=1e-9, atol=1e-9)
    assert torch.allclose(ours, n_pair(similarity(texts, images, tau)), rtol=1e-9, atol=1e-9)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    assert torch.allclose(ours[order], n_pair(similarity(images[order], texts[order], tau)), rtol=1e-9, atol=1e-9)


@pytest.mark.system("clip-contrastive-loss")
@pytest.mark.system("clip-contrastive-loss", "equal-texts")
def test_equal_texts_are_no_negatives() -> None:
    """Different texts: the plain loss. Twins: the target is shared out, so a model that scores them alike is right."""
    scores = normal(4, 4)
    close(grouped_n_pair(scores, torch.tensor([3, 0, 2, 1])), n_pair(scores))
    twins = torch.tensor([[9.0, 9.0, -9.0], [9.0, 9.0, -9.0], [-9.0, -9.0, 9.0]], dtype=torch.float64)
    group = torch.tensor([0, 0, 1])
    close(grouped_n_pair(twins, group)[:2], torch.full((2,), math.log(2), dtype=torch.float64), loosen=100)  # e^−18
    slope = torch.autograd.functional.jacobian(lambda s: grouped_n_pair(s, group).sum(), twins)
    assert slope.abs().max() < 1e-6
    assert torch.autograd.functional.jacobian(lambda s: n_pair(s).sum(), twins).abs().max() > 0.4


@pytest.mark.system("clip-contrastive-loss")
@pytest.mark.system("clip-contrastive-loss", "gradients")
def test_gradients() -> None:
    images, texts = (normal(3, 4, seed=i).requires_grad_() for i in (0, 1))
    assert torch.autograd.gradcheck(lambda a, b: n_pair(similarity(a, b, 0.5)), (images, texts))
    group = torch.tensor([0, 1, 0])
    assert torch.autograd.gradcheck(lambda a, b: grouped_n_pair(similarity(a, b), group), (images, texts))


def test_refusals() -> None:
    with pytest.raises(Mistake, match="temperature 0"):
        similarity(torch.ones(2, 3), torch.ones(2, 3), 0)
    with pytest.raises(Mistake, match="the same width"):
        similarity(torch.ones(2, 3), torch.ones(2, 4))
    with pytest.raises(Mistake, match="as many images as texts"):
        n_pair(torch.ones(2, 3))
    with pytest.raises(Mistake, match="as many images as texts"):
        grouped_n_pair(torch.ones(2, 3), torch.tensor([0, 1]))
