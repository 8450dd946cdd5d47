"""Q-learning as gradient descent: the update of a table is a step on half the squared error to a fixed target.

    y = r + γ max_a' Q(s', a')            no gradient; y = r where the episode ended
    L = Σ α ½ (y − Q(s, a))²              −∂L/∂Q(s, a) = α (y − Q(s, a)): the update of S940 9.2, at learning rate 1

The rates α come with the batch, because they count how often each pair was tried.

Systems: q-learning
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor, nn

from descend.contracts import Batch, Move, Task
from descend.losses.reinforcement import td_target

Play = Callable[[Callable[[Tensor], Tensor], Sequence[int]], Tensor]


class QLearning(Task):
    """A batch is one step of many walks; one move of "q"."""

    players = ("q",)

    def __init__(self, q: nn.Module, gamma: float, play: Play, distance: Callable[[Tensor], float]):
        """`play(act, seeds)` gives the returns of whole episodes; `distance(Q)` says how far the table is from Q*."""
        super().__init__()
        self.q, self.gamma, self.play, self.distance = q, gamma, play, distance

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("q", lambda: self.loss(batch))

    def loss(self, batch: Batch) -> Tensor:
        """The mean over the batch of weight · ½ (y − Q(s, a))²."""
        with torch.no_grad():
            target = td_target(batch["reward"], self.q(batch["next"]), batch["terminated"], self.gamma)
        taken = self.q(batch["state"]).gather(-1, batch["action"][:, None])[:, 0]
        return (0.5 * batch["weight"] * (target - taken).square()).mean()

    def values(self, state: Tensor) -> Tensor:
        """Q(s, ·), wherever the table lives; what the stream explores with."""
        return self.q(state.to(next(self.q.parameters()).device)).detach().cpu()

    def greedy(self, state: Tensor) -> Tensor:
        """argmax_a Q(s, a)"""
        return self.values(state).argmax(-1)

    @torch.no_grad()
    def score(self, batch: Batch) -> dict[str, Tensor]:
        """The return of each episode whose seed the batch names, played greedily; max |Q − Q*| of the table."""
        returns = self.play(self.greedy, batch["seed"].tolist())
        return {"return": returns, "distance": torch.full_like(returns, self.distance(next(self.q.parameters())))}
