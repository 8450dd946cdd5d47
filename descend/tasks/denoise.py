"""Learning to denoise: the network sees x_t and is to say the noise in it (or the image, or v).

    x_t = √ᾱ_t x + √(1 − ᾱ_t) ε        L = E γ_t ‖target − f_θ(x_t, t, y)‖² / numbers of x

x (b, ..), the noise ε (b, ..) and the time u (b) in 0..1 come with the batch: t = ⌊uT⌋ counts 0..T−1 and is uniform.
With conditions y (b) the batch says whose condition is dropped, and "none" takes its place: one network learns both the
conditional and the unconditional noise (classifier-free guidance). Batches for validation have fixed, evenly spread u.

Systems: noise-prediction-loss, ddpm, classifier-free-guidance
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from descend.contracts import Batch, Loss, Move, Task
from descend.losses.diffusion import Weights, noise_prediction_loss, weigh
from descend.ops.diffusion.kernels import add_noise
from descend.ops.diffusion.prediction import Predicts, target_of
from descend.ops.diffusion.schedule import NoiseSchedule

GOLDEN = 0.6180339887498949


class Denoise(Task):
    """Scored by the same loss, weighted alike, on fixed noise."""

    def __init__(
        self,
        model: nn.Module,
        noise: NoiseSchedule,
        predicts: Predicts = "eps",
        weights: Weights = "simple",
        none: int | None = None,
        judge_samples: Callable[[], dict[str, float]] | None = None,
    ):
        """`none`: the number of the condition that stands for none; without one the network has no conditions."""
        super().__init__()
        self.model, self.noise, self.predicts, self.none = model, noise, predicts, none
        self.weights = weigh(weights, noise, predicts)
        self.judge_samples = judge_samples

    def losses(self, batch: Batch) -> Tensor:
        """γ_t times the mean squared error of each example."""
        x, eps = batch["x"], batch["noise"]
        t = (batch["time"] * self.noise.steps).long().clamp(max=self.noise.steps - 1)
        abar = self.noise.at(t, x)
        noisy, target = add_noise(x, eps, abar), target_of(self.predicts, x, eps, abar)
        said = self.model(noisy, t, self.condition(batch)) if self.none is not None else self.model(noisy, t)
        weight = self.weights.to(t.device)[t].to(x.dtype)
        return noise_prediction_loss(said, target, weight) / x[0].numel()

    def condition(self, batch: Batch) -> Tensor:
        """y, or "none" where the batch drops it."""
        assert self.none is not None
        return torch.where(batch["drop"], self.none, batch["y"])

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("model", lambda: Loss({"loss": self.losses(batch).mean()}))

    @torch.no_grad()
    def score(self, batch: Batch) -> dict[str, Tensor]:
        return {"loss": self.losses(batch)}

    def judge(self, means: dict[str, float], evidence: dict[str, Any]) -> dict[str, float]:
        return {**means, **(self.judge_samples() if self.judge_samples else {})}


def draw_times(n: int, random: torch.Generator) -> Tensor:
    """n times in 0..1, of which every stretch is spread evenly: u + i φ mod 1, φ the golden ratio. Each is uniform."""
    start = torch.rand((), generator=random, dtype=torch.float64)
    return ((start + GOLDEN * torch.arange(n, dtype=torch.float64)) % 1).float().clamp(max=1 - 2**-24)


def draw_noise(shape: tuple[int, ...], n: int, random: torch.Generator, drop: float | None = None) -> dict[str, Tensor]:
    """Noise and times of n examples of a shape; with conditions, which of them are dropped, each with chance `drop`."""
    found = {"noise": torch.randn(n, *shape, generator=random), "time": draw_times(n, random)}
    return found if drop is None else found | {"drop": torch.rand(n, generator=random) < drop}
