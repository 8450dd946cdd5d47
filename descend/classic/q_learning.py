"""Q-learning with a table: learn the best policy from steps alone, whatever policy took them.

    Q(s_t, a_t) ← Q(s_t, a_t) + α [r_t + γ max_a' Q(s_{t+1}, a') − Q(s_t, a_t)]

What the book leaves open, filled in as usual:

    end           nothing is added beyond a terminal state; a time limit is no end, so Q of the cut state still counts
    exploration   ε-greedy: with probability ε(n) any action, else a best one (equally good ones by lot); ε = 1: random
    α             α_k = α_1 (1 + (k − 1)/τ)^−ω at the k-th visit of the pair: about α_1 for τ visits, then falling.
                  For 1/2 < ω ≤ 1, Σ α = ∞ and Σ α² < ∞ (Robbins and Monro) and Q comes to Q*; ω = 0 is constant

The reward after the action at t is r_t, as in S940 9.2 (9.1 writes R_{t+1}). Many walks step side by side. One walk is
the book's algorithm; m walks at the same pair move it by 1 − (1 − α)^m towards the mean of their targets, as m updates
in a row would. Exploring starts (episodes that begin anywhere) are the caller's: they are another process.

Systems: q-learning
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from descend.contracts import Batch
from descend.errors import Mistake
from descend.losses.reinforcement import td_target
from descend.ops.decisions.process import DecisionProcess
from descend.ops.decisions.rates import StepSize
from descend.ops.decisions.walks import draw_states, take_step
from descend.seeds import generator

Values = Callable[[Tensor], Tensor]
"""states (b) -> Q (b, A)"""


def choose_actions(q: Tensor, epsilon: float, u: Tensor) -> Tensor:
    """ε-greedy actions (b) for Q (b, A), by u in 0..1 (b, A + 1)."""
    best = q == q.amax(1, keepdim=True)
    allowed = best | (u[:, :1] < epsilon)
    return u[:, 1:].masked_fill(~allowed, -1.0).argmax(1)


class Experience:
    """A stream: every batch is one ε-greedy step of each of `copies` walks, with the weight that its update has.

    `weight` is b (1 − (1 − α_k)^m) / m for each of m walks at the same pair, so that −∇ of the mean over the batch of
    weight · ½ δ² is the update of the table. Random numbers are a function of (seed, draw) and need no state.
    """

    def __init__(
        self,
        process: DecisionProcess,
        q: Values,
        epsilon: Callable[[int], float],
        step_size: StepSize,
        copies: int,
        limit: int,
        seed: int,
    ):
        """`limit`: steps after which an episode is cut off."""
        self.process, self.q, self.epsilon, self.step_size = process, q, epsilon, step_size
        self.copies, self.limit, self.seed = copies, limit, seed
        self.draw = 0
        self.visits = torch.zeros(process.states * process.actions, dtype=torch.long)  # k of each pair
        u = torch.rand(copies, generator=generator(seed, 0), dtype=torch.float64)
        self.state = draw_states(process, u)
        self.age = torch.zeros(copies, dtype=torch.long)
        self.total = torch.zeros(copies, dtype=torch.float64)
        self.finished: list[tuple[float, float]] = []  # for each draw: episodes that were over, sum of their returns

    @property
    def steps(self) -> int:
        """Environment steps so far, over all walks."""
        return self.draw * self.copies

    @torch.no_grad()
    def __next__(self) -> Batch:
        process, state = self.process, self.state
        self.draw += 1
        chance = generator(self.seed, self.draw)
        u = torch.rand(self.copies, process.actions + 3, generator=chance, dtype=torch.float64)
        action = choose_actions(self.q(state), self.epsilon(self.steps - self.copies), u[:, 2:])
        step = take_step(process, state, action, u[:, 0])
        pair = state * process.actions + action
        crowd = torch.bincount(pair, minlength=len(self.visits))
        rate = self.step_size(self.visits + 1)
        self.visits += crowd
        self._move_on(step.following, step.reward, step.ended, draw_states(process, u[:, 1]))
        return {
            "state": state,
            "action": action,
            "reward": step.reward.float(),
            "next": step.following,
            "terminated": step.ended,
            "weight": (self.copies * (1 - (1 - rate) ** crowd) / crowd)[pair].float(),
            "ids": torch.arange(self.copies),
        }

    def _move_on(self, following: Tensor, reward: Tensor, ended: Tensor, fresh: Tensor) -> None:
        self.age, self.total = self.age + 1, self.total + reward
        over = ended | (self.age >= self.limit)
        self.finished.append((float(over.sum()), float(self.total[over].sum())))
        self.state = torch.where(over, fresh, following)
        self.age, self.total = self.age.masked_fill(over, 0), self.total.masked_fill(over, 0.0)

    def state_dict(self) -> dict[str, Any]:
        return {
            "draw": self.draw,
            "visits": self.visits.clone(),
            "state": self.state.clone(),
            "age": self.age.clone(),
            "total": self.total.clone(),
            "finished": torch.tensor(self.finished, dtype=torch.float64).view(-1, 2),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        visits, here = torch.as_tensor(state["visits"]), torch.as_tensor(state["state"])
        if (len(visits), len(here)) != (len(self.visits), self.copies):
            raise Mistake(
                f"the checkpoint has {len(here)} walks and {len(visits)} pairs of state and action, not {self.copies}"
                f" and {len(self.visits)}; resume with the same --batch and the same environment"
            )
        self.draw, self.visits, self.state = state["draw"], visits.clone(), here.clone()
        self.age, self.total = torch.as_tensor(state["age"]).clone(), torch.as_tensor(state["total"]).clone()
        self.finished = [(n, total) for n, total in torch.as_tensor(state["finished"]).tolist()]


def update(q: Tensor, batch: Batch, gamma: float) -> None:
    """One update of the table q (S, A), in place: Q(s, a) ← Q(s, a) + α [r + γ max_a' Q(s', a') − Q(s, a)]."""
    target = td_target(batch["reward"].to(q.dtype), q[batch["next"]], batch["terminated"], gamma)
    pair = batch["state"] * q.shape[1] + batch["action"]
    rate = batch["weight"].to(q.dtype) / len(pair)
    q.view(-1).index_add_(0, pair, rate * (target - q.view(-1)[pair]))


class Learned(NamedTuple):
    """What Q-learning found."""

    q: Tensor
    """Q (S, A), float64."""
    visits: Tensor
    """How often each pair was tried (S, A)."""


def learn(
    process: DecisionProcess,
    steps: int,
    epsilon: Callable[[int], float],
    step_size: StepSize,
    copies: int = 1,
    limit: int = 1000,
    seed: int = 0,
    watch: Callable[[int, Tensor], None] | None = None,
) -> Learned:
    """Q from this many steps of each walk; `watch(step, q)` looks on."""
    q = torch.zeros(process.states, process.actions, dtype=torch.float64)
    stream = Experience(process, lambda state: q[state], epsilon, step_size, copies, limit, seed)
    for step in range(1, steps + 1):
        update(q, next(stream), process.gamma)
        if watch is not None:
            watch(step, q)
    return Learned(q, stream.visits.view_as(q))
