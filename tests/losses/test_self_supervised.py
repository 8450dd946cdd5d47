"""Losses without labels: by hand, against torch and pytorch-metric-learning, by gradcheck, and their limits."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from descend.errors import Mistake
from descend.losses.self_supervised import (
    against_queue,
    contrastive_margin,
    cosine_regression,
    info_nce,
    info_nce_of_energies,
    negative_cosine,
    noise_contrastive,
    nt_xent,
)
from tests.close import close

losses = pytest.importorskip("pytorch_metric_learning.losses")


def vectors(n: int, d: int = 5, seed: int = 0) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.system("infonce")
@pytest.mark.system("infonce", "equal-energies", "energies")
@pytest.mark.parametrize("n", [2, 7, 100])
def test_equal_energies_give_log_n(n: int) -> None:
    energies, first = torch.full((3, n), 1.7, dtype=torch.float64), torch.tensor([0, 1, n - 1])
    close(info_nce_of_energies(energies, first, tau=0.3), torch.full((3,), math.log(n), dtype=torch.float64))


@pytest.mark.system("infonce")
@pytest.mark.system("infonce", "cross-entropy", "temperature")
@pytest.mark.parametrize("tau", [0.07, 1.0, 2.5])
def test_infonce_is_the_cross_entropy_of_similarities_over_tau(tau: float) -> None:
    scores, positive = vectors(4, 6), torch.tensor([0, 5, 2, 2])
    close(info_nce(scores, positive, tau), F.cross_entropy(scores / tau, positive, reduction="none"))
    close(info_nce_of_energies(-scores, positive, tau), info_nce(scores, positive, tau))
    by_hand = -torch.log(torch.exp(scores[1, 5] / tau) / torch.exp(scores[1] / tau).sum())
    close(info_nce(scores, positive, tau)[1], by_hand)


@pytest.mark.system("infonce", "temperature")
def test_a_temperature_is_positive_and_lowers_the_loss_of_a_clear_case() -> None:
    scores, positive = torch.tensor([[2.0, 0.0, 1.0]]), torch.tensor([0])
    assert info_nce(scores, positive, 0.1) < info_nce(scores, positive, 1.0) < info_nce(scores, positive, 10.0)
    with pytest.raises(Mistake, match="temperature 0"):
        info_nce(scores, positive, 0.0)


@pytest.mark.system("simclr")
@pytest.mark.system("simclr", "by-hand")
def test_nt_xent_by_hand_for_two_images() -> None:
    """Views a, a' on one axis, b, b' on another: every view has one twin at cosine 1 and two strangers at 0."""
    z = torch.eye(2, dtype=torch.float64)
    expected = -math.log(math.e**2 / (math.e**2 + 2))
    close(nt_xent(z, 3 * z, tau=0.5), torch.full((4,), expected, dtype=torch.float64))


@pytest.mark.system("simclr")
@pytest.mark.system("simclr", "oracle")
@pytest.mark.parametrize("tau", [0.1, 0.5])
def test_nt_xent_is_that_of_pytorch_metric_learning(tau: float) -> None:
    z1, z2 = vectors(6), vectors(6, seed=1)
    theirs = losses.NTXentLoss(temperature=tau)(torch.cat([z1, z2]), torch.arange(6).repeat(2))
    close(nt_xent(z1, z2, tau).mean(), theirs)


@pytest.mark.system("simclr", "random-embeddings")
@pytest.mark.parametrize("n", [16, 128])
def test_random_embeddings_give_about_log_2n_minus_1(n: int) -> None:
    z1, z2 = vectors(n, 4096), vectors(n, 4096, seed=1)
    assert float(nt_xent(z1, z2, 0.5).mean()) == pytest.approx(math.log(2 * n - 1), abs=0.02)


@pytest.mark.system("moco")
@pytest.mark.system("moco", "infonce-queue")
def test_moco_is_infonce_with_the_key_first() -> None:
    q, k, queue = vectors(3), vectors(3, seed=1), F.normalize(vectors(8, seed=2), dim=1)
    unit = F.normalize(q, dim=1)
    logits = torch.cat([(unit * F.normalize(k, dim=1)).sum(1, keepdim=True), unit @ queue.T], dim=1) / 0.07
    close(against_queue(q, k, queue, 0.07), F.cross_entropy(logits, torch.zeros(3, dtype=torch.long), reduction="none"))


@pytest.mark.system("pirl")
@pytest.mark.system("pirl", "noise-contrastive")
def test_pirls_estimator_by_hand() -> None:
    v, m, others = vectors(2), vectors(2, seed=1), vectors(6, seed=2).view(2, 3, 5)
    found = noise_contrastive(v, m, others, tau=0.5)
    for i in range(2):
        e = lambda a, b: math.exp(F.cosine_similarity(a, b, dim=0).item() / 0.5)
        noise = sum(e(v[i], n) for n in others[i])
        h = lambda b: e(v[i], b) / (e(v[i], b) + noise)
        assert found[i].item() == pytest.approx(-math.log(h(m[i])) - sum(math.log(1 - h(n)) for n in others[i]))


@pytest.mark.system("byol")
@pytest.mark.system("byol", "loss")
def test_byols_loss_is_the_squared_distance_of_unit_vectors() -> None:
    p, z = vectors(4), vectors(4, seed=1)
    found = cosine_regression(p, z)
    close(found, (F.normalize(p, dim=1) - F.normalize(z, dim=1)).square().sum(1))
    close(found, 2 - 2 * F.cosine_similarity(p, z))
    close(cosine_regression(p, -p), torch.full((4,), 4.0, dtype=torch.float64))


@pytest.mark.system("simsiam")
@pytest.mark.system("simsiam", "loss", "stop-gradient")
def test_simsiams_loss_is_bounded_and_stops_the_gradient() -> None:
    p, z = vectors(4).requires_grad_(), vectors(4, seed=1).requires_grad_()
    found = negative_cosine(p, z)
    close(found, -F.cosine_similarity(p, z))
    assert (found >= -1).all()
    assert (found <= 1).all()
    found.sum().backward()
    assert p.grad is not None
    assert p.grad.abs().sum() > 0
    assert z.grad is None


@pytest.mark.system("deepface-verification")
@pytest.mark.system("deepface-verification", "margin-loss")
def test_the_margin_loss_of_pairs() -> None:
    d, same = torch.tensor([0.5, 0.5, 2.0]), torch.tensor([True, False, False])
    close(contrastive_margin(d, same, margin=1.5), torch.tensor([0.25, 1.0, 0.0]))
    from pytorch_metric_learning.distances import LpDistance
    from pytorch_metric_learning.reducers import DoNothingReducer as DoNothing

    e = vectors(5)
    labels = torch.tensor([0, 0, 1, 2, 1])
    i, j = torch.triu_indices(5, 5, 1)
    mine = contrastive_margin((e[i] - e[j]).norm(dim=1), labels[i] == labels[j], 4.0)
    theirs = losses.ContrastiveLoss(  # theirs is not squared
        pos_margin=0, neg_margin=4.0, distance=LpDistance(normalize_embeddings=False), reducer=DoNothing()
    )(e, labels)
    close(mine[labels[i] == labels[j]].sqrt().sort().values, theirs["pos_loss"]["losses"].view(-1)[::2].sort().values)
    shown = theirs["neg_loss"]["losses"]
    close(mine[labels[i] != labels[j]].sqrt().sum(), shown.sum() / 2)


@pytest.mark.system("infonce", "gradients")
def test_gradients() -> None:
    z1, z2 = (vectors(3, 4, seed).requires_grad_() for seed in (0, 1))
    queue, others = vectors(5, 4, 2), vectors(6, 4, 3).view(3, 2, 4)
    first = torch.zeros(3, dtype=torch.long)
    assert torch.autograd.gradcheck(lambda a: info_nce(a, first, 0.5), (z1,))
    assert torch.autograd.gradcheck(lambda a, b: nt_xent(a, b, 0.5), (z1, z2))
    assert torch.autograd.gradcheck(lambda a, b: against_queue(a, b, queue, 0.5), (z1, z2))
    assert torch.autograd.gradcheck(lambda a, b: noise_contrastive(a, b, others, 0.5), (z1, z2))
    assert torch.autograd.gradcheck(cosine_regression, (z1, z2))
