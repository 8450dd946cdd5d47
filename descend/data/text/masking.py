"""Masks for masked language modelling: which tokens are hidden, and what stands in their place.

    t is chosen with probability 0.15, each token alone; special tokens never
    a chosen token becomes   [MASK] with 0.8,   a token drawn from the whole vocabulary with 0.1,   itself with 0.1
    loss at the chosen tokens, the unchanged ones too        12%, 1.5% and 1.5% of all tokens

    dynamic   a new choice each time a text is seen: the average over epochs tends to E_M[L]  (RoBERTa)
    static    one choice for each text, the same in every epoch: stays biased to its draw     (BERT)

With t tokens nothing is chosen with probability 0.85^t (0.44 for t = 5); such a text costs nothing (`losses.masked`).
The draw for a text is a function of the seed and of the text's number (static) or of its place in the stream (dynamic),
so it depends neither on the batch size nor on the number of processes.

Systems: mlm, roberta
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from descend.data.streams.arrays import Shuffled
from descend.errors import Mistake
from descend.ranges import PositiveShare, Share

Batch = dict[str, Tensor]


@dataclass(frozen=True)
class Masking:
    """How many tokens are chosen, and what becomes of them."""

    rate: PositiveShare = 0.15
    """Share of the tokens that are chosen."""
    mask: Share = 0.8
    """Share of the chosen ones that are replaced by [MASK]."""
    random: Share = 0.1
    """Share of the chosen ones that are replaced by a random token; the rest stay."""

    def __post_init__(self) -> None:
        if not (0 < self.rate <= 1 and self.mask >= 0 and self.random >= 0 and self.mask + self.random <= 1 + 1e-9):
            raise Mistake(
                f"masking {self.rate}, {self.mask}, {self.random}: the rate is in 0..1, and mask and random are at "
                f"least 0 and at most 1 together"
            )

    def shares(self) -> tuple[float, float, float]:
        """Of all tokens: replaced by [MASK], replaced by a random token, chosen and kept."""
        return self.rate * self.mask, self.rate * self.random, self.rate * (1 - self.mask - self.random)

    def nothing_chosen(self, t: int) -> float:
        """The probability that none of t tokens is chosen."""
        return (1 - self.rate) ** t


@dataclass(frozen=True)
class Corruption:
    """A masking, and the numbers of a vocabulary that it needs."""

    masking: Masking
    vocab: int
    mask: int
    special: Sequence[int]

    def __call__(self, tokens: Tensor, u: Tensor) -> Batch:
        """x: the corrupted tokens, y: the tokens, at: where the loss is; u (b, t, 3) uniform in 0..1, tokens (b, t)."""
        m = self.masking
        at = (u[..., 0] < m.rate) & ~torch.isin(tokens, torch.tensor(list(self.special), dtype=tokens.dtype))
        drawn = (u[..., 2] * self.vocab).long().clamp(max=self.vocab - 1)
        x = torch.where(at & (u[..., 1] < m.mask), self.mask, tokens)
        x = torch.where(at & (u[..., 1] >= m.mask) & (u[..., 1] < m.mask + m.random), drawn, x)
        return {"x": x, "y": tokens, "at": at}


class Static:
    """A stream with masks: every text has the same mask each time it comes. The stream's `x` are tokens (b, t)."""

    def __init__(self, stream: Shuffled, corrupt: Corruption, seed: int):
        self.stream, self.corrupt, self.seed = stream, corrupt, seed

    def keys(self, batch: Batch, place: int) -> Tensor:
        """What the draw of each text depends on, beside the seed: its number."""
        return batch["ids"]

    def __next__(self) -> Batch:
        c = self.stream.cursor
        place = c.epoch * c.n + c.position + c.rank * c.share
        batch = next(self.stream)
        u = uniform(self.seed, self.keys(batch, place), batch["x"].shape[1] * 3).unflatten(1, (-1, 3))
        return {**batch, **self.corrupt(batch["x"], u)}

    def state_dict(self) -> dict[str, Any]:
        return self.stream.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.stream.load_state_dict(state)


class Dynamic(Static):
    """A stream with masks: a text has another mask each time it comes."""

    def keys(self, batch: Batch, place: int) -> Tensor:
        """The text's place in the stream."""
        return place + torch.arange(len(batch["x"]))


def mask_arrays(arrays: Batch, corrupt: Corruption, seed: int) -> Batch:
    """Arrays with one mask for each text, drawn once: for validation."""
    u = uniform(seed, torch.arange(len(arrays["x"])), arrays["x"].shape[1] * 3).unflatten(1, (-1, 3))
    return {**arrays, **corrupt(arrays["x"], u)}


def uniform(seed: int, keys: Tensor, count: int) -> Tensor:
    """(b, count) numbers in 0..1 that belong to the seed, the key (b) and the column: a hash, not a sequence."""
    rows = _mix(keys.numpy().astype(np.uint64) + _mix(np.array([seed % 2**64], dtype=np.uint64)))
    z = _mix(rows[:, None] + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    return torch.from_numpy((z >> np.uint64(40)).astype(np.float32)) * 2.0**-24


def _mix(z: np.ndarray) -> np.ndarray:
    """Whole numbers of 64 bits to others that look like chance: shifts and products, each of which can be undone."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
