"""The gradient of one move, over all micro-batches of a step and all processes.

    L = Σ_k Σ_i w_ki m_ki        w_ki = n_ki / Σ_i n_ki        i: every micro-batch of every process, k: terms

Each micro-batch is evaluated and differentiated by itself, so that only one is in memory. The counts n come with the
moves, before any of them is evaluated: tokens, boxes or pairs weigh the same wherever the batch is cut. Without counts
the unit is the example and every w is the same. Processes average their gradients, so each multiplies by their number.

A loss that compares the examples of the whole batch (`JointMove`) is taken in two passes:

    1  c_i = encode(x_i) without a graph, brought together;  g_i = ∂L/∂c_i of L = compare(c)
    2  minimise Σ_i ⟨encode(x_i), g_i⟩ + compare(c), c fixed       its gradient is that of L, by the chain rule

The second pass repeats the random numbers of the first.

Systems: gradient-accumulation
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from torch import Tensor

from descend.contracts import EVERY, JointMove, Loss, Move, as_loss
from descend.engine.distributed import Replica
from descend.engine.hardware import widen

Autocast = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True)
class Found:
    """The value of each term over the whole step, and what was measured on the way."""

    terms: dict[str, float]
    told: dict[str, float]

    @property
    def loss(self) -> float:
        return sum(self.terms.values())

    def to_metrics(self, player: str = "") -> dict[str, float]:
        """What is logged beside the loss: its terms where there are several, and the measured values."""
        of = f"loss_{player}_" if player else "loss_"
        terms = {of + name: value for name, value in self.terms.items()} if len(self.terms) > 1 else {}
        return terms | self.told


def gradient(turn: Sequence[Move | JointMove], replica: Replica, autocast: Autocast) -> Callable[[], Found]:
    """A function that adds the gradient of a move, given for each micro-batch, to that of the player's parameters."""
    joint = [move for move in turn if isinstance(move, JointMove)]
    if joint and (len(turn) > 1 or replica.world.size > 1):
        return lambda: _all_together(joint, replica, autocast)
    weights = _weights(turn, replica)
    return lambda: _one_by_one(turn, weights, replica, autocast)


def _weights(turn: Sequence[Move | JointMove], replica: Replica) -> list[dict[str, float]]:
    """w_ki times the number of processes, for each micro-batch here, of the terms whose units were counted."""
    units = [move.units if isinstance(move, Move) else {} for move in turn]
    if not units[0]:
        return [{} for _ in turn]
    counts = torch.stack([torch.stack([widen(n) for n in parts.values()]) for parts in units])  # (i, k)
    whole = replica.world.sum(counts.sum(dim=0)).clamp(min=1)
    share = (counts / whole * replica.world.size).tolist()
    return [dict(zip(parts, row, strict=True)) for parts, row in zip(units, share, strict=True)]


def _one_by_one(
    turn: Sequence[Move | JointMove], weights: list[dict[str, float]], replica: Replica, autocast: Autocast
) -> Found:
    parts = []
    for i, (move, weight) in enumerate(zip(turn, weights, strict=True)):
        part = lambda: _weigh(move, weight, 1 / len(turn), autocast)
        parts.append(replica.backward(part, last=i == len(turn) - 1))
    return Found(*(replica.world.means(_add(found)) for found in ([p.terms for p in parts], [p.told for p in parts])))


def _weigh(move: Move | JointMove, weight: dict[str, float], equal: float, autocast: Autocast) -> Loss:
    """The micro-batch's share of the step's loss."""
    with autocast():
        found = move.value()
    if equal == 1 and not weight:
        return found
    other = weight.get(EVERY, equal)
    terms = {name: m * weight.get(name, other) for name, m in found.terms.items()}
    return Loss(terms, {name: value * equal for name, value in found.told.items()})


def _add(parts: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Sums by name."""
    if len(parts) == 1:
        return {name: value.detach() for name, value in parts[0].items()}
    return {name: torch.stack([widen(part[name].detach()) for part in parts]).sum() for name in parts[0]}


def _all_together(turn: list[JointMove], replica: Replica, autocast: Autocast) -> Found:
    codes, states = [], []
    for move in turn:
        states.append(torch.get_rng_state())
        codes.append(replica.compute(lambda: _encode(move, autocast)))
    rows = [len(next(iter(code.values()))) for code in codes]
    joined = {name: torch.cat([code[name] for code in codes]) for name in codes[0]}
    whole = {name: replica.world.gather_rows(c) for name, c in joined.items()}
    states.append(torch.get_rng_state())
    found, pulls = replica.compute(lambda: _pull(turn[0], whole, autocast))
    start = replica.world.rank * sum(rows)
    for i, move in enumerate(turn):
        mine, last = slice(start, start := start + rows[i]), i == len(turn) - 1

        def part() -> Loss:
            torch.set_rng_state(states[i])
            with autocast():
                again = move.encode()
            pull = torch.stack([(again[name] * d[mine]).sum() for name, d in pulls.items()]).sum()
            torch.set_rng_state(states[-1])
            with autocast():
                direct = as_loss(move.compare(whole)).total() if last else torch.zeros(())
            return Loss({"pull": replica.world.size * pull + direct})

        replica.backward(part, last)
    return Found(*({name: v.item() for name, v in values.items()} for values in (found.terms, found.told)))


@torch.no_grad()
def _encode(move: JointMove, autocast: Autocast) -> dict[str, Tensor]:
    with autocast():
        return move.encode()


def _pull(move: JointMove, codes: dict[str, Tensor], autocast: Autocast) -> tuple[Loss, dict[str, Tensor]]:
    """L of all codes, and ∂L/∂c for those that it depends on."""
    leaves = {name: c.detach().requires_grad_() for name, c in codes.items() if c.is_floating_point()}
    with autocast():
        found = as_loss(move.compare(codes | leaves))
    g = torch.autograd.grad(found.total(), list(leaves.values()), allow_unused=True)
    pulls = {name: d for name, d in zip(leaves, g, strict=True) if d is not None}
    return Loss(*({name: v.detach() for name, v in values.items()} for values in (found.terms, found.told))), pulls
