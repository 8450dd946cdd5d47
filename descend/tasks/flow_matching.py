"""Flow matching: a network learns the velocity of straight paths from noise to data.

    L = E ‖v(x_t, t) − (x_1 − (1 − σ) x_0)‖²        x_t = (1 − (1 − σ) t) x_0 + t x_1

A batch is data x (b, ..), noise of its shape and times t (b) in 0..1: randomness is data. The term is divided by the
numbers of an example, so that images and points have losses of one size.

Systems: flow-matching
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn

from descend.contracts import Batch, Move, Task
from descend.losses.flow_matching import conditional_path, velocity_error
from descend.tasks.density import score_density


class MatchVelocity(Task):
    """`model(x, t)` is the velocity."""

    def __init__(self, model: nn.Module, sigma: float = 0.0):
        super().__init__()
        self.model, self.sigma = model, sigma

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("model", lambda: self.error(batch).mean())

    def error(self, batch: Batch) -> Tensor:
        """The squared error of each example, a mean over its numbers."""
        x, u = conditional_path(batch["noise"], batch["x"], batch["t"], self.sigma)
        return velocity_error(self.model(x, batch["t"]), u) / x[0].numel()

    def score(self, batch: Batch) -> dict[str, Tensor]:
        return {"loss": self.error(batch)}


class MatchDensity(MatchVelocity):
    """The same for points, scored by their likelihood as well: `log_prob` solves the ODE back."""

    def __init__(self, model: nn.Module, sigma: float = 0.0, log_scale: float = 0.0):
        super().__init__(model, sigma)
        self.log_scale = log_scale

    def score(self, batch: Batch) -> dict[str, Tensor]:
        likelihood = score_density(self.model.log_prob, batch, self.log_scale)  # type: ignore[arg-type]
        return {"loss": self.error(batch), **likelihood}
