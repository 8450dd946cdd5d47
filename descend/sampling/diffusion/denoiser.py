"""What every sampler is given: a callable that says, at x_t, which image and which noise it sees.

    predict(x (b, ..), t (b)) -> ε, x_0 or v, as `predicts` says          Denoiser(x, t, ᾱ) -> (x_0, ε)

Guidance is another callable around the first: `free_guidance` and `classifier_guidance` return a `predict`.

Systems: ddpm-sampler, classifier-guidance, classifier-free-guidance
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.ops.diffusion.guidance import classifier_gradient, combine, guide_prediction
from descend.ops.diffusion.prediction import Estimate, Predicts, estimate
from descend.ops.diffusion.schedule import NoiseSchedule

Predict = Callable[[Tensor, Tensor], Tensor]
Conditional = Callable[[Tensor, Tensor, Tensor], Tensor]
Noise = Callable[[], Tensor]
"""Fresh N(0, I) in the shape of a batch of samples."""


@dataclass
class Denoiser:
    """Image and noise, as a network sees them. `calls` counts how often it was asked."""

    predict: Predict
    predicts: Predicts = "eps"
    clip: float = 0.0
    """Images are kept in −clip..clip; 0: not."""
    calls: int = 0

    def __call__(self, x: Tensor, t: float, abar: float) -> Estimate:
        """At x with the noise level ᾱ; the network is told t."""
        self.calls += 1
        times = torch.full((len(x),), t, dtype=torch.float32 if t != round(t) else torch.long, device=x.device)
        x0, eps = estimate(self.predicts, self.predict(x, times), x, abar)
        return Estimate(x0.clamp(-self.clip, self.clip) if self.clip else x0, eps)


def free_guidance(network: Conditional, y: Tensor, none: Tensor, gamma: float) -> Predict:
    """u + γ (c − u) from one doubled batch; at γ = 1 and γ = 0 a single call of the plain size.

    `y` (b, ..) are the conditions and `none` the placeholder in their shape. Any prediction (ε, x_0 or v) may be
    combined: they are linear in each other at one x_t.
    """

    def predict(x: Tensor, t: Tensor) -> Tensor:
        if gamma == 1:
            return network(x, t, y)
        if gamma == 0:
            return network(x, t, none)
        u, c = network(torch.cat([x, x]), torch.cat([t, t]), torch.cat([none, y])).chunk(2)
        return combine(u, c, gamma)

    return predict


def classifier_guidance(
    predict: Predict, classifier: Predict, y: Tensor, gamma: float, noise: NoiseSchedule, predicts: Predicts = "eps"
) -> Predict:
    """ε − γ √(1 − ᾱ_t) ∇ log p(y | x_t) with a classifier(x, t) -> logits that was trained on noisy images; what is
    predicted may be x_0 or v instead."""
    if (y < 0).any():
        raise Mistake("classifier guidance needs a class for every sample: give --class")

    def guided(x: Tensor, t: Tensor) -> Tensor:
        out = predict(x, t)
        if not gamma:
            return out
        return guide_prediction(predicts, out, classifier_gradient(classifier, x, t, y), gamma, noise.at(t, x))

    return guided
