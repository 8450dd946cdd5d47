"""Deep Q-learning: regress Q on its own one-step target, taken from a slower copy of itself.

    y = r + γ max_a' Q(s', a'; θ⁻)        θ⁻: the target network; y = r where s' is terminal
    L(θ) = E_D[(y − Q(s, a; θ))²]
    θ⁻ ← θ every C moves (hard), or θ⁻ ← τ θ + (1 − τ) θ⁻ after each (soft)

Without the copy the target would move with every step. A time limit is not an end: only termination stops the
bootstrap.
Left out, as in the books: double Q-learning, prioritised replay, the Huber loss.

Systems: dqn
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from descend.contracts import Batch, Move
from descend.losses.reinforcement import td_loss, td_target
from descend.ranges import Count, PositiveShare
from descend.tasks.playing import Play, Playing


@dataclass(frozen=True)
class Hard:
    """θ⁻ ← θ every C moves, and frozen between."""

    every: Count = 100
    """C."""

    @torch.no_grad()
    def __call__(self, target: nn.Module, online: nn.Module, moves: int) -> None:
        if moves % self.every == 0:
            for old, new in zip(target.parameters(), online.parameters(), strict=True):
                old.copy_(new)


@dataclass(frozen=True)
class Soft:
    """θ⁻ ← τ θ + (1 − τ) θ⁻ after every move."""

    tau: PositiveShare = 0.005

    @torch.no_grad()
    def __call__(self, target: nn.Module, online: nn.Module, moves: int) -> None:
        for old, new in zip(target.parameters(), online.parameters(), strict=True):
            old.lerp_(new, self.tau)


class DQN(Playing):
    """A batch is a sample of transitions; one move of "q"."""

    players = ("q",)

    def __init__(self, q: nn.Module, gamma: float, follow: Hard | Soft, play: Play):
        super().__init__()
        self.q = q
        self.target = copy.deepcopy(q).requires_grad_(False)
        self.gamma, self.follow, self.play = gamma, follow, play
        self.followed = 0  # moves after which θ⁻ was last looked at

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("q", lambda: td_loss(self.q(batch["observation"]), batch["action"], self.aim(batch)))
        moves = int(batch["draw"][0]) + 1
        if moves != self.followed:  # the slices of one batch (accumulation) all come here: follow once
            self.follow(self.target, self.q, moves)
            self.followed = moves

    @torch.no_grad()
    def aim(self, batch: Batch) -> Tensor:
        """y, by θ⁻."""
        return td_target(batch["reward"], self.target(batch["next"]), batch["terminated"], self.gamma)

    def values(self, observation: Tensor) -> Tensor:
        """Q(s, ·), wherever the network lives; what the stream explores with."""
        return self.q(observation.to(next(self.q.parameters()).device)).cpu()

    def greedy(self, observation: Tensor) -> Tensor:
        """argmax_a Q(s, a)"""
        return self.values(observation).argmax(-1)
