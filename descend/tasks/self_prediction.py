"""Joint embedding without negatives: one view's projection is predicted from the other's. BYOL and SimSiam.

    BYOL       2 − 2 cos(q(z₁), z'₂) + 2 − 2 cos(q(z₂), z'₁)           z' by a slow copy of the encoder and projector
               θ' ← τ θ' + (1 − τ) θ after every step, τ from τ₀ to 1 (`nn/momentum`)
    SimSiam    −½ cos(q(z₁), sg z₂) − ½ cos(q(z₂), sg z₁)              sg: no gradient

The trivial answer, the same vector for everything, would cost nothing. It is not reached since one branch lags behind
(BYOL) or takes no gradient (SimSiam) and the other alone has a predictor; take that away and it is (lab `collapse`).

Systems: byol, simsiam
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from descend.contracts import Batch, Loss, Move
from descend.losses.self_supervised import cosine_regression, negative_cosine
from descend.nn.momentum import follow, rising_momentum, slow_copy
from descend.tasks.representation import JointEmbedding


class BYOL(JointEmbedding):
    """A batch has x1 and x2; `steps` is the length of the run, over which the momentum rises to 1."""

    steps_taken: Tensor

    def __init__(self, model: nn.Module, momentum: float = 0.996, steps: int = 1):
        super().__init__()
        self.model, self.target = model, slow_copy(model)
        self.momentum, self.steps = momentum, steps
        self.register_buffer("steps_taken", torch.zeros((), dtype=torch.long))
        self.due = False

    def moves(self, batch: Batch) -> Iterator[Move]:
        self.due = True
        yield Move("model", lambda: self.loss(batch["x1"], batch["x2"]))
        if self.due:  # the parts of one step all come here: follow once
            follow(self.target, self.model, rising_momentum(self.momentum, int(self.steps_taken), self.steps))
            self.steps_taken += 1
            self.due = False

    def aim(self, x: Tensor) -> Tensor:
        """z', by the slow copy."""
        with torch.no_grad():
            found: Tensor = self.target.project(x)  # type: ignore[operator]
        return found

    def loss(self, x1: Tensor, x2: Tensor) -> Loss:
        """Both directions."""
        p1, p2 = (self.model.predict(self.model.project(x)) for x in (x1, x2))
        both = cosine_regression(p1, self.aim(x2)) + cosine_regression(p2, self.aim(x1))
        return Loss({"loss": both.mean()}, {"positive": 1 - both.detach().mean() / 4})


class SimSiam(JointEmbedding):
    """A batch has x1 and x2; `loss_of(p, z)` is D, which stops the gradient into z."""

    def __init__(self, model: nn.Module, loss_of: Callable[[Tensor, Tensor], Tensor] = negative_cosine):
        super().__init__()
        self.model, self.loss_of = model, loss_of

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("model", lambda: self.loss(batch["x1"], batch["x2"]))

    def loss(self, x1: Tensor, x2: Tensor) -> Loss:
        """The mean of both directions, in [−1, 1]."""
        z1, z2 = self.model.project(x1), self.model.project(x2)
        p1, p2 = self.model.predict(z1), self.model.predict(z2)
        both = (self.loss_of(p1, z2) + self.loss_of(p2, z1)) / 2
        return Loss({"loss": both.mean()}, {"positive": -both.detach().mean()})
