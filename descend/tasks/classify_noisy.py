"""Classifying images at every level of noise.

    x_t = √ᾱ_t x + √(1 − ᾱ_t) ε        L = −E log p_θ(y | x_t, t),   t uniform

x (b, ..), classes y (b), the noise ε (b, ..) and the time u (b) in 0..1 come with the batch; t = ⌊uT⌋. Accuracy falls
with t, towards that of a guess.

Systems: classifier-guidance
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from descend.contracts import Batch, Loss, Move, Task
from descend.losses.classification import cross_entropy
from descend.ops.diffusion.kernels import add_noise
from descend.ops.diffusion.schedule import NoiseSchedule


class ClassifyNoisy(Task):
    """model(x_t, t) -> logits"""

    def __init__(self, model: nn.Module, noise: NoiseSchedule):
        super().__init__()
        self.model, self.noise = model, noise

    def logits(self, batch: Batch) -> Tensor:
        x = batch["x"]
        t = (batch["time"] * self.noise.steps).long().clamp(max=self.noise.steps - 1)
        found: Tensor = self.model(add_noise(x, batch["noise"], self.noise.at(t, x)), t)
        return found

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("model", lambda: Loss({"loss": cross_entropy(self.logits(batch), batch["y"]).mean()}))

    @torch.no_grad()
    def score(self, batch: Batch) -> dict[str, Tensor]:
        logits, y = self.logits(batch), batch["y"]
        return {"loss": cross_entropy(logits, y), "accuracy": (logits.argmax(-1) == y).to(logits.dtype)}
