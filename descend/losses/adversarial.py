"""The losses of two players: a discriminator or critic that scores examples, and a generator whose examples it scores.

From the scores s = d(x) of real and t = d(G(z)) of generated examples, D = σ(s):

    min_G max_D  V = E log D(x) + E log(1 − D(G(z)))

    name              the discriminator minimises                     the generator minimises
    NonSaturating     −E log σ(s) − E log σ(−t)    (= −V)             −E log σ(t)             ∂/∂t = −(1 − D)
    Saturating        the same                                         E log σ(−t)            ∂/∂t = −D
    LeastSquares      ½ E (s − 1)² + ½ E t²                            ½ E (t − 1)²
    Hinge             E max(0, 1 − s) + E max(0, 1 + t)               −E t
    Wasserstein       −E s + E t                                      −E t                    d must be 1-Lipschitz
    Relativistic      −E log σ(s − t)                                 −E log σ(t − s)         s, t by pairs
    RelativisticMean  −E log σ(s − t̄) − E log σ(s̄ − t)                the same, s and t exchanged; s̄, t̄ means

V is −log 4 when D = ½ everywhere. The saturating loss has no gradient where D rejects (D → 0), the non-saturating its
strongest there; both have the same fixed point. log σ(s) and log(1 − σ(s)) = log σ(−s) are taken in the log domain,
finite for scores of ±1e4. The hinge has no gradient for s > 1 and t < −1. Relativistic losses are log 2 (2 log 2 for
the mean) at equal scores, and do not change when a constant is added to all scores.

Errata: DLN-C.42 prints max_G −log D, which drives D(G(z)) to 0; right is max_G log D. DLN-C.39's first form has the
order min_D max_G; the order of the original is taken here. The books name the losses from Hinge on without formulas;
these are the original papers' (Lim & Ye 2017, Arjovsky et al. 2017, Jolicoeur-Martineau 2018; LeastSquares: Mao 2017).

Systems: gan, generator-loss-variants, hinge-gan-loss, relativistic-gan, wgan
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

from torch import Tensor
from torch.nn.functional import logsigmoid

Terms = dict[str, Tensor]
Compares = Literal["nothing", "pairs", "batch"]


class GameLoss(Protocol):
    """What each player minimises, from the scores of real and of generated examples; terms by name."""

    @property
    def compares(self) -> Compares:
        """Scores with nothing; each real one with one generated; or all of a batch, which is no mean over examples."""

    def of_discriminator(self, real: Tensor, fake: Tensor) -> Terms: ...

    def of_generator(self, real: Tensor, fake: Tensor) -> Terms:
        """`real` is empty where the loss compares nothing."""

    def tell(self, real: Tensor, fake: Tensor) -> Terms:
        """What is worth watching, by name."""


# Cross-entropy


def real_loss(real: Tensor) -> Tensor:
    """−E log D(x)"""
    return -logsigmoid(real).mean()


def fake_loss(fake: Tensor) -> Tensor:
    """−E log(1 − D(G(z)))"""
    return -logsigmoid(-fake).mean()


def discriminator_loss(real: Tensor, fake: Tensor) -> Tensor:
    """−E log D(x) − E log(1 − D(G(z))): two binary cross-entropies, real is 1 and generated is 0."""
    return real_loss(real) + fake_loss(fake)


def game_values(v: Tensor) -> tuple[Tensor, Tensor]:
    """min_G max_D V and max_D min_G V of a game v[d, g]. The first is never smaller; both are one at a saddle point."""
    return v.amax(0).min(), v.amin(1).max()


def non_saturating(fake: Tensor) -> Tensor:
    """−E log D(G(z))"""
    return -logsigmoid(fake).mean()


def saturating(fake: Tensor) -> Tensor:
    """E log(1 − D(G(z))), the generator's part of V."""
    return logsigmoid(-fake).mean()


@dataclass(frozen=True)
class NonSaturating:
    """Cross-entropy; the generator raises log D(G(z))."""

    compares: ClassVar[Compares] = "nothing"

    def of_discriminator(self, real: Tensor, fake: Tensor) -> Terms:
        return {"real": real_loss(real), "fake": fake_loss(fake)}

    def of_generator(self, real: Tensor, fake: Tensor) -> Terms:
        return {"loss": non_saturating(fake)}

    def tell(self, real: Tensor, fake: Tensor) -> Terms:
        """D(x) and D(G(z)), which meet at ½ when they cannot be told apart."""
        return {"real_score": real.sigmoid().mean(), "fake_score": fake.sigmoid().mean()}


@dataclass(frozen=True)
class Saturating:
    """Cross-entropy; the generator lowers log(1 − D(G(z))), its part of V."""

    compares: ClassVar[Compares] = "nothing"

    def of_discriminator(self, real: Tensor, fake: Tensor) -> Terms:
        return {"real": real_loss(real), "fake": fake_loss(fake)}

    def of_generator(self, real: Tensor, fake: Tensor) -> Terms:
        return {"loss": saturating(fake)}

    def tell(self, real: Tensor, fake: Tensor) -> Terms:
        """D(x) and D(G(z))"""
        return {"real_score": real.sigmoid().mean(), "fake_score": fake.sigmoid().mean()}


# Squares, margins, differences


@dataclass(frozen=True)
class LeastSquares:
    """Scores are drawn to 1 and 0 by squares, which also teaches from scores on the right side."""

    compares: ClassVar[Compares] = "nothing"

    def of_discriminator(self, real: Tensor, fake: Tensor) -> Terms:
        return {"real": (real - 1).square().mean() / 2, "fake": fake.square().mean() / 2}

    def of_generator(self, real: Tensor, fake: Tensor) -> Terms:
        return {"loss": (fake - 1).square().mean() / 2}

    def tell(self, real: Tensor, fake: Tensor) -> Terms:
        """Means, which meet at ½ when they cannot be told apart."""
        return {"real_score": real.mean(), "fake_score": fake.mean()}


@dataclass(frozen=True)
class Hinge:
    """Only scores inside the margin −1..1, or on its wrong side, teach the discriminator."""

    compares: ClassVar[Compares] = "nothing"

    def of_discriminator(self, real: Tensor, fake: Tensor) -> Terms:
        return {"real": (1 - real).relu().mean(), "fake": (1 + fake).relu().mean()}

    def of_generator(self, real: Tensor, fake: Tensor) -> Terms:
        return {"loss": -fake.mean()}

    def tell(self, real: Tensor, fake: Tensor) -> Terms:
        """The share of examples outside the margin, which teach the discriminator nothing any more."""
        return {"real_beyond_margin": (real > 1).float().mean(), "fake_beyond_margin": (fake < -1).double().mean()}


@dataclass(frozen=True)
class Wasserstein:
    """A critic, no classifier: over 1-Lipschitz functions the gap E s − E t is W₁ of data and generator."""

    compares: ClassVar[Compares] = "nothing"

    def of_discriminator(self, real: Tensor, fake: Tensor) -> Terms:
        return {"real": -real.mean(), "fake": fake.mean()}

    def of_generator(self, real: Tensor, fake: Tensor) -> Terms:
        return {"loss": -fake.mean()}

    def tell(self, real: Tensor, fake: Tensor) -> Terms:
        """The gap, which falls as the generator learns."""
        return {"critic_gap": real.mean() - fake.mean()}


# Relativistic


@dataclass(frozen=True)
class Relativistic:
    """Is this real example more real than this generated one? By pairs: scores (n, ..) of both, in order."""

    compares: ClassVar[Compares] = "pairs"

    def of_discriminator(self, real: Tensor, fake: Tensor) -> Terms:
        return {"loss": -logsigmoid(real - fake).mean()}

    def of_generator(self, real: Tensor, fake: Tensor) -> Terms:
        return {"loss": -logsigmoid(fake - real).mean()}

    def tell(self, real: Tensor, fake: Tensor) -> Terms:
        """How often the real one of a pair has the higher score."""
        return {"real_above_fake": (real > fake).float().mean()}


@dataclass(frozen=True)
class RelativisticMean:
    """Is it more real than the others are in the mean? (RaGAN)"""

    compares: ClassVar[Compares] = "batch"

    def of_discriminator(self, real: Tensor, fake: Tensor) -> Terms:
        return {"real": -logsigmoid(real - fake.mean()).mean(), "fake": -logsigmoid(real.mean() - fake).mean()}

    def of_generator(self, real: Tensor, fake: Tensor) -> Terms:
        return self.of_discriminator(fake, real)

    def tell(self, real: Tensor, fake: Tensor) -> Terms:
        """How often a real one has a higher score than the mean of the generated ones."""
        return {"real_above_fake": (real > fake.mean()).float().mean()}
