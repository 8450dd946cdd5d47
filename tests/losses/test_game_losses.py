"""Hinge, Wasserstein, least squares and relativistic losses: values by hand, where they teach, what they ignore."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from descend.losses.adversarial import (
    GameLoss,
    Hinge,
    LeastSquares,
    NonSaturating,
    Relativistic,
    RelativisticMean,
    Saturating,
    Wasserstein,
    discriminator_loss,
    non_saturating,
    saturating,
)
from tests.close import close

ALL: list[GameLoss] = [
    NonSaturating(),
    Saturating(),
    LeastSquares(),
    Hinge(),
    Wasserstein(),
    Relativistic(),
    RelativisticMean(),
]


def t(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def total(terms: dict[str, Tensor]) -> Tensor:
    return torch.stack(list(terms.values())).sum()


@pytest.mark.system("gan")
@pytest.mark.system("generator-loss-variants", "switchable")
def test_cross_entropies() -> None:
    real, fake = t(1.0, -2.0, 0.3), t(0.5, -1.0, 2.0)
    for loss, of_g in ((NonSaturating(), non_saturating), (Saturating(), saturating)):
        close(total(loss.of_discriminator(real, fake)), discriminator_loss(real, fake))
        close(total(loss.of_generator(real, fake)), of_g(fake))
        close(loss.tell(real, fake)["fake_score"], fake.sigmoid().mean())


@pytest.mark.system("hinge-gan-loss")
@pytest.mark.system("hinge-gan-loss", "by-hand")
def test_hinge_by_hand() -> None:
    """At D = ±1 on the right side nothing is left; on the wrong side each costs 2."""
    hinge = Hinge()
    close(1 + total(hinge.of_discriminator(t(1.0), t(-1.0))), torch.tensor(1.0, dtype=torch.float64))
    close(total(hinge.of_discriminator(t(-1.0), t(1.0))), torch.tensor(4.0, dtype=torch.float64))
    close(total(hinge.of_discriminator(t(0.5, 2.0), t(-0.5, 0.0))), torch.tensor(0.25 + 0.75, dtype=torch.float64))
    close(total(hinge.of_generator(t(), t(0.5, -2.0))), torch.tensor(0.75, dtype=torch.float64))
    theirs = F.hinge_embedding_loss(t(0.3, -0.2), t(-1.0, -1.0), margin=1.0)  # mean max(0, 1 − x)
    close(hinge.of_discriminator(t(0.3, -0.2), t(-9.0, -9.0))["real"], theirs)


@pytest.mark.system("hinge-gan-loss")
@pytest.mark.system("hinge-gan-loss", "margin")
def test_beyond_the_margin_there_is_nothing_to_learn_for_d_but_for_g() -> None:
    real, fake = (t(*v).requires_grad_() for v in ((1.5, 0.5), (-3.0, -0.9)))
    grads = torch.autograd.grad(total(Hinge().of_discriminator(real, fake)), (real, fake))
    assert [g.tolist() for g in grads] == [[0.0, -0.5], [0.0, 0.5]]
    (g,) = torch.autograd.grad(total(Hinge().of_generator(real, fake)), fake)
    assert g.tolist() == [-0.5, -0.5]
    told = Hinge().tell(real, fake)
    assert (float(told["real_beyond_margin"]), float(told["fake_beyond_margin"])) == (0.5, 0.5)


@pytest.mark.system("wgan")
@pytest.mark.system("wgan", "gap")
def test_wasserstein_is_the_gap() -> None:
    real, fake = t(2.0, 4.0), t(1.0, -1.0)
    close(total(Wasserstein().of_discriminator(real, fake)), torch.tensor(-3.0, dtype=torch.float64))
    close(Wasserstein().tell(real, fake)["critic_gap"], torch.tensor(3.0, dtype=torch.float64))
    close(1 + total(Wasserstein().of_generator(real, fake)), torch.tensor(1.0, dtype=torch.float64))


def test_least_squares_by_hand() -> None:
    real, fake = t(1.0, 3.0), t(0.0, 2.0)
    close(total(LeastSquares().of_discriminator(real, fake)), torch.tensor(1.0 + 1.0, dtype=torch.float64))
    close(total(LeastSquares().of_generator(real, fake)), torch.tensor(0.5, dtype=torch.float64))


@pytest.mark.system("relativistic-gan")
@pytest.mark.system("relativistic-gan", "equal-scores")
def test_relativistic_at_equal_scores() -> None:
    scores = t(0.7, 0.7, 0.7)
    for of in (Relativistic().of_discriminator, Relativistic().of_generator):
        close(total(of(scores, scores)), torch.tensor(math.log(2), dtype=torch.float64))
    for of in (RelativisticMean().of_discriminator, RelativisticMean().of_generator):
        close(total(of(scores, scores)), torch.tensor(2 * math.log(2), dtype=torch.float64))


@pytest.mark.system("relativistic-gan")
@pytest.mark.system("relativistic-gan", "pairs", "mean")
def test_relativistic_against_cross_entropy() -> None:
    """Each is a binary cross-entropy of differences; the generator's has the roles exchanged."""
    real, fake = torch.randn(2, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    bce = F.binary_cross_entropy_with_logits
    one, none = torch.ones(6, dtype=torch.float64), torch.zeros(6, dtype=torch.float64)
    close(total(Relativistic().of_discriminator(real, fake)), bce(real - fake, one))
    close(total(Relativistic().of_generator(real, fake)), bce(fake - real, one))
    of_d = bce(real - fake.mean(), one) + bce(fake - real.mean(), none)
    of_g = bce(fake - real.mean(), one) + bce(real - fake.mean(), none)
    close(total(RelativisticMean().of_discriminator(real, fake)), of_d)
    close(total(RelativisticMean().of_generator(real, fake)), of_g)


@pytest.mark.system("relativistic-gan")
@pytest.mark.system("relativistic-gan", "shift")
@pytest.mark.parametrize("loss", [Relativistic(), RelativisticMean()])
def test_a_constant_added_to_all_scores_changes_nothing(loss: GameLoss) -> None:
    real, fake = t(0.3, -1.0, 2.0), t(-0.2, 0.9, 0.1)
    for of in (loss.of_discriminator, loss.of_generator):
        close(total(of(real + 7, fake + 7)), total(of(real, fake)))
    plain = NonSaturating().of_discriminator
    assert abs(total(plain(real + 7, fake + 7)) - total(plain(real, fake))) > 1


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: type(loss).__name__)
def test_gradcheck_and_extreme_scores(loss: GameLoss) -> None:
    real, fake = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in ([0.3, -2.1], [0.7, -0.4]))
    for of in (loss.of_discriminator, loss.of_generator):
        assert torch.autograd.gradcheck(lambda r, f, of=of: total(of(r, f)), (real, fake))
        for sign in (1, -1):
            found = total(of(sign * 1e4 * torch.ones(3), -sign * 1e4 * torch.ones(3)))
            assert found.isfinite()
