"""Diffusion in closed form: what sampling costs, how guidance sharpens a density on a line, and chains of Gaussians.

    cost           T sequential passes of the network for each image; a GAN needs one
    guided         p_γ(x) ∝ p(x) p(y | x)^γ, its mean, variance and mean p(y | x), by quadrature
    linear chain   x ← a x + σ z takes a variance v to a² v + σ²: with the exact predictor of Gaussian data every
                   sampler is one, so what it makes of N(0, 1) noise is known without drawing any

Systems: ddpm-sampler, classifier-guidance, denoising-vector-field
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from torch import Tensor


def image_dimensions(height: int, width: int, channels: int = 1) -> int:
    """Numbers of an image: the dimension of the hypercube that it is a point of.

    Systems: denoising-vector-field
    """
    return height * width * channels


@dataclass(frozen=True)
class SamplingCost:
    """What it takes to sample images by T passes each, beside a generator that needs one."""

    images: int
    seconds: float
    passes: int
    """T of each image."""
    gan_seconds: float

    @property
    def seconds_per_image(self) -> float:
        return self.seconds / self.images

    @property
    def evaluations(self) -> int:
        """Passes of the network."""
        return self.images * self.passes

    @property
    def evaluations_per_second(self) -> float:
        return self.evaluations / self.seconds

    @property
    def slowdown(self) -> float:
        """Against the GAN."""
        return self.seconds / self.gan_seconds


@dataclass(frozen=True)
class Guided:
    """What guidance with γ makes of a density on a line."""

    mean: float
    variance: float
    alignment: float
    """E p(y | x)"""


def guided_moments(x: Tensor, log_p: Tensor, log_y: Tensor, gamma: float) -> Guided:
    """Of p(x) p(y | x)^γ on an even grid x that covers it."""
    w = (log_p + gamma * log_y).softmax(0)
    mean = (w * x).sum()
    return Guided(float(mean), float((w * (x - mean).square()).sum()), float((w * log_y.exp()).sum()))


def chain_variance(start: float, steps: Iterable[tuple[float, float]]) -> float:
    """v ← a² v + s for steps (a, s)."""
    for a, s in steps:
        start = a * a * start + s
    return start
