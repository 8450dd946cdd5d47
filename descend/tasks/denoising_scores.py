"""Learning scores at several noise levels by predicting the noise.

    x̃ = x + σ_t ε        L = (1/2) E ‖ε − s̃(x̃, t)‖²        the weight 1 of λ_t = σ_t² (`losses/score_matching.py`)

x (b, d), the level t (b) and the noise ε (b, d) come with the batch. What the model then generates is judged once for
every evaluation, by `judge_samples`, where one is given.

Systems: denoising-score-matching, multi-scale-score-model
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from descend.contracts import Batch, Loss, Move, Task
from descend.losses.score_matching import denoising_by_noise


class PredictsNoise(Protocol):
    """A network of noisy points and their level."""

    def sigma(self, level: Tensor) -> Tensor: ...

    def __call__(self, x: Tensor, level: Tensor) -> Tensor: ...


class DenoisingScores(Task):
    """Scored by the same loss, on fixed noise."""

    model: PredictsNoise

    def __init__(self, model: PredictsNoise, judge_samples: Callable[[], dict[str, float]] | None = None):
        super().__init__()
        assert isinstance(model, nn.Module)
        self.model, self.judge_samples = model, judge_samples

    def losses(self, batch: Batch) -> Tensor:
        """½ ‖ε − s̃‖² of each example."""
        x = batch["x"] + self.model.sigma(batch["level"]) * batch["noise"]
        return denoising_by_noise(self.model(x, batch["level"]), batch["noise"], 1.0)

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("model", lambda: Loss({"loss": self.losses(batch).mean()}))

    @torch.no_grad()
    def score(self, batch: Batch) -> dict[str, Tensor]:
        return {"loss": self.losses(batch)}

    def judge(self, means: dict[str, float], evidence: dict[str, Any]) -> dict[str, float]:
        return {**means, **(self.judge_samples() if self.judge_samples else {})}
