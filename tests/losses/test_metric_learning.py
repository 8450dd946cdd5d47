"""Losses on embeddings: torch, closed forms, gradients at coinciding points, learning to separate."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from descend.errors import Mistake
from descend.losses.margin import margin_ranking
from descend.losses.metric_learning import cosine, cosine_embedding, distance, hinge_embedding, triplet_margin
from tests.close import close


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


SIGN = torch.tensor([1.0, -1.0, -1.0, 1.0, -1.0], dtype=torch.float64)


@pytest.mark.system("hinge-embedding-loss")
@pytest.mark.system("hinge-embedding-loss", "distances")
@pytest.mark.parametrize("order", [1, 2])
def test_hinge_embedding_of_both_distances(order: int) -> None:
    a, b = normal(5, 3), normal(5, 3, seed=1)
    x = distance(a, b, order)
    close(x, (a - b).abs().pow(order).sum(-1) ** (1 / order))
    close(hinge_embedding(x, SIGN, 2.0).mean(), F.hinge_embedding_loss(x, SIGN, margin=2.0))
    assert hinge_embedding(torch.tensor([5.0]), torch.tensor([-1.0])).item() == 0  # far enough apart


@pytest.mark.system("cosine-embedding-loss")
@pytest.mark.system("cosine-embedding-loss", "margin")
@pytest.mark.parametrize("margin", [-1.0, 0.0, 0.5])
def test_cosine_embedding_is_torchs(margin: float) -> None:
    a, b = normal(5, 3), normal(5, 3, seed=2)
    close(cosine_embedding(a, b, SIGN, margin).mean(), F.cosine_embedding_loss(a, b, SIGN, margin))
    close(cosine(a, b), F.cosine_similarity(a, b))
    lengths = cosine_embedding(3 * a, 1e-12 * b, SIGN, margin)  # do not count
    close(lengths, cosine_embedding(a, b, SIGN, margin))


@pytest.mark.system("cosine-embedding-loss")
@pytest.mark.system("cosine-embedding-loss", "half-distance")
def test_one_minus_cosine_is_half_the_squared_distance_of_unit_vectors() -> None:
    """DLN's "normalized Euclidean distance" is inconsistent: 0.1111 against 0.4714 for its example."""
    a, b = normal(6, 4), normal(6, 4, seed=3)
    apart = distance(F.normalize(a), F.normalize(b))
    close(1 - cosine(a, b), apart.square() / 2)
    assert not torch.allclose(1 - cosine(a, b), apart)


@pytest.mark.system("triplet-margin-loss")
def test_triplet_is_torchs_and_a_ranking_of_distances() -> None:
    a, p, n = (normal(7, 4, seed=seed) for seed in (4, 5, 6))
    close(triplet_margin(a, p, n, 1.5), F.triplet_margin_loss(a, p, n, 1.5, eps=0.0, reduction="none"))
    one = torch.ones(7, dtype=torch.float64)
    close(triplet_margin(a, p, n), margin_ranking(distance(a, n), distance(a, p), one, 1.0))


@pytest.mark.system("triplet-margin-loss")
@pytest.mark.system("triplet-margin-loss", "zero")
def test_triplet_is_zero_beyond_the_margin_and_pulls_the_right_way() -> None:
    """DLN-B.90: zero once d(a, n) ≥ d(a, p) + m; the negative is pushed off, the positive pulled in."""
    a = torch.zeros(1, 2, dtype=torch.float64)
    p = torch.tensor([[1.0, 0.0]], dtype=torch.float64, requires_grad=True)
    n = torch.tensor([[0.0, 1.5]], dtype=torch.float64, requires_grad=True)
    by_p, by_n = torch.autograd.grad(triplet_margin(a, p, n).sum(), (p, n))
    close(by_p, torch.tensor([[1.0, 0.0]], dtype=torch.float64))  # down the gradient p comes nearer
    close(by_n, torch.tensor([[0.0, -1.0]], dtype=torch.float64))  # and n goes away
    assert triplet_margin(a, p.detach(), torch.tensor([[0.0, 2.0]]).double()).item() == 0


@pytest.mark.system("hinge-embedding-loss")
@pytest.mark.system("hinge-embedding-loss", "pairs")
@pytest.mark.system("cosine-embedding-loss")
@pytest.mark.system("cosine-embedding-loss", "pairs")
@pytest.mark.system("triplet-margin-loss")
@pytest.mark.system("triplet-margin-loss", "embedding")
def test_each_loss_learns_to_tell_two_kinds_apart() -> None:
    """Six free embeddings of two kinds, from random starts; images and captions are trained in the same way."""
    kinds = torch.tensor([0, 0, 0, 1, 1, 1])
    i, j = torch.triu_indices(6, 6, 1)
    alike = torch.where(kinds[i] == kinds[j], 1.0, -1.0).double()
    triples = [(a, p, n) for a in range(6) for p in range(6) for n in range(6) if a != p and kinds[a] == kinds[p]]
    a, p, n = torch.tensor([t for t in triples if kinds[t[0]] != kinds[t[2]]]).T
    losses = (
        lambda x: hinge_embedding(distance(x[i], x[j]), alike, 2.0),
        lambda x: cosine_embedding(x[i], x[j], alike, 0.0),
        lambda x: triplet_margin(x[a], x[p], x[n]),
    )
    start = distance(normal(6, 3, seed=7)[i], normal(6, 3, seed=7)[j])
    assert start[alike == 1].max() > start[alike == -1].min()
    for loss in losses:
        x = normal(6, 3, seed=7).requires_grad_()
        optimizer = torch.optim.SGD([x], lr=0.5)
        for _ in range(150):
            optimizer.zero_grad()
            loss(x).mean().backward()
            optimizer.step()
        apart = 1 - cosine(x[i], x[j]) if loss is losses[1] else distance(x[i], x[j])
        assert apart[alike == 1].max() < apart[alike == -1].min()


@pytest.mark.system("hinge-embedding-loss")
@pytest.mark.system("cosine-embedding-loss")
@pytest.mark.system("triplet-margin-loss")
def test_gradcheck() -> None:
    a, b, c = (normal(5, 3, seed=seed).requires_grad_() for seed in (8, 9, 10))
    assert torch.autograd.gradcheck(lambda a, b: hinge_embedding(distance(a, b), SIGN, 3.0), (a, b))
    assert torch.autograd.gradcheck(lambda a, b: cosine_embedding(a, b, SIGN, 0.1), (a, b))
    assert torch.autograd.gradcheck(lambda a, b, c: triplet_margin(a, b, c), (a, b, c))


@pytest.mark.system("hinge-embedding-loss")
@pytest.mark.system("cosine-embedding-loss")
@pytest.mark.system("triplet-margin-loss")
def test_coinciding_zero_and_extreme_embeddings_have_finite_gradients() -> None:
    one = torch.ones(3)
    for x in (torch.zeros(3, 2), torch.full((3, 2), 1e4), torch.tensor([[1e4, -1e4], [0.0, 0.0], [1e-4, 0.0]])):
        for y in (one, -one):
            a = x.clone().requires_grad_()
            losses = (
                hinge_embedding(distance(a, x), y) + cosine_embedding(a, x, y) + triplet_margin(a, x, -x)
            )  # a coincides with x
            assert losses.isfinite().all()
            assert torch.autograd.grad(losses.sum(), a)[0].isfinite().all()


@pytest.mark.system("hinge-embedding-loss")
@pytest.mark.system("cosine-embedding-loss")
@pytest.mark.system("triplet-margin-loss")
def test_bad_input_is_named() -> None:
    a = torch.ones(2, 3)
    with pytest.raises(Mistake, match="record 1: label 0 is neither"):
        cosine_embedding(a, a, torch.tensor([1.0, 0.0]))
    with pytest.raises(Mistake, match="record 0: distance -1 is negative"):
        hinge_embedding(torch.tensor([-1.0]), torch.ones(1))
    with pytest.raises(Mistake, match=r"pairs and labels differ in shape: \(2,\) and \(2, 1\)"):
        cosine_embedding(a, a, torch.ones(2, 1))
    with pytest.raises(Mistake, match="margin 2"):
        cosine_embedding(a, a, torch.ones(2), margin=2)
    with pytest.raises(Mistake, match=r"embeddings differ in shape: \(2, 3\) and \(3,\)"):
        triplet_margin(a, a[0], a)


@pytest.mark.system("triplet-margin-loss", "image-and-caption")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_triples_of_an_image_and_two_captions_align_two_encoders(seed: int) -> None:
    """The image is the anchor, its caption the positive, another's the negative; then each image finds its caption."""
    random = torch.Generator().manual_seed(seed)
    meaning = torch.randn(12, 4, dtype=torch.float64, generator=random)
    images, captions = (meaning @ torch.randn(4, 10, dtype=torch.float64, generator=random) for _ in range(2))
    see, read = (torch.randn(10, 6, dtype=torch.float64, generator=random).mul(0.1).requires_grad_() for _ in range(2))

    def found() -> float:
        apart = torch.cdist(images @ see, captions @ read)
        return (apart.argmin(1) == torch.arange(12)).double().mean().item()

    before = found()
    optimizer = torch.optim.Adam([see, read], lr=0.02)
    for _ in range(150):
        other = (torch.arange(12) + torch.randint(1, 12, (12,), generator=random)) % 12
        optimizer.zero_grad()
        triplet_margin(images @ see, captions @ read, (captions @ read)[other]).mean().backward()
        optimizer.step()
    assert before < 0.5
    assert found() == 1.0
