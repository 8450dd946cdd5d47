"""Generative against discriminative: a class by Bayes' rule from models of the objects, or directly.

    generative        P(object | label), P(label)             classify by Bayes: P(label | object) ∝ P(object | label)
                                                              P(label); and new objects can be drawn
    discriminative    P(label | object) alone                 logistic regression (`classic/linear.py`)

    Gaussian classes  P(object | k) = N(μ_k, Σ_k)             three models: Σ_k of its own (quadratic discriminant
                                                              analysis), one Σ for all (linear), diagonal (naive Bayes)
    one Σ             P(k | object) = softmax(W object + c)   w_k = Σ⁻¹ μ_k,  c_k = log P(k) − ½ μ_kᵀ Σ⁻¹ μ_k

The last line is where the two meet: the generative model with one Σ is a logistic regression with other weights, so
the two kinds are interchangeable by Bayes' rule and differ in what they are fitted to.
DLD writes x for the label and y for the object, the reverse of the usual letters; here x is the object, y the label.
(On tables: `ops/math/probability.py`, `given_rows` and `given_columns`.)

Systems: generative-versus-discriminative
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.distributions import MultivariateNormal

from descend.errors import Mistake


@dataclass(frozen=True)
class GaussianClassifier:
    """P(k) (c), μ (c, d), Σ (c, d, d)."""

    prior: Tensor
    mean: Tensor
    covariance: Tensor

    def log_joint(self, x: Tensor) -> Tensor:
        """log P(k) + log N(x; μ_k, Σ_k) of points (n, d): (n, c)"""
        return self.prior.log() + MultivariateNormal(self.mean, self.covariance).log_prob(x[:, None])

    def log_prob(self, x: Tensor) -> Tensor:
        """log P(x): how usual an object is, which no discriminative model can say."""
        return self.log_joint(x).logsumexp(1)

    def probability(self, x: Tensor) -> Tensor:
        """P(k | x), by Bayes' rule: (n, c)"""
        return self.log_joint(x).softmax(1)

    def sample(self, classes: Tensor, random: torch.Generator) -> Tensor:
        """A new object (n, d) for each label (n)."""
        noise = torch.randn(len(classes), self.mean.shape[1], generator=random, dtype=self.mean.dtype)
        root = torch.linalg.cholesky(self.covariance)[classes]
        return self.mean[classes] + (root @ noise[..., None])[..., 0]


def fit_own(x: Tensor, y: Tensor, classes: int) -> GaussianClassifier:
    """Every class has its own Σ_k, the maximum of the likelihood (1/n_k)."""
    prior, mean, rest = count_classes(x, y, classes)
    own = [rest[y == k].T @ rest[y == k] / int((y == k).sum()) for k in range(classes)]
    return GaussianClassifier(prior, mean, torch.stack(own))


def fit_shared(x: Tensor, y: Tensor, classes: int) -> GaussianClassifier:
    """One Σ for all classes, around the mean of each (1/n)."""
    prior, mean, rest = count_classes(x, y, classes)
    return GaussianClassifier(prior, mean, (rest.T @ rest / len(x)).expand(classes, -1, -1))


def fit_diagonal(x: Tensor, y: Tensor, classes: int) -> GaussianClassifier:
    """Naive Bayes: the numbers of an object are independent given its class (1/n_k)."""
    prior, mean, rest = count_classes(x, y, classes)
    variance = torch.stack([rest[y == k].square().mean(0) for k in range(classes)])
    return GaussianClassifier(prior, mean, torch.diag_embed(variance))


def count_classes(x: Tensor, y: Tensor, classes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Share and mean of every class, and x minus the mean of its class."""
    count = torch.bincount(y, minlength=classes)
    if int(count.min()) < 2:
        raise Mistake(f"class {int(count.argmin())} has {int(count.min())} examples; a Gaussian needs at least 2")
    mean = torch.stack([x[y == k].mean(0) for k in range(classes)])
    return count.to(x) / len(x), mean, x - mean[y]


def to_logistic(model: GaussianClassifier) -> tuple[Tensor, Tensor]:
    """W (c, d) and c (c) with P(k | x) = softmax(W x + c), for a model with one Σ."""
    if not torch.equal(model.covariance, model.covariance[:1].expand_as(model.covariance)):
        raise ValueError("classes with covariances of their own have curved boundaries: no logistic regression")
    w = torch.linalg.solve(model.covariance[0], model.mean.T).T
    return w, model.prior.log() - (w * model.mean).sum(1) / 2
