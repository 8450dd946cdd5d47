"""Sequences of frames in which a bright spot moves across a dark ground, and pairs of frames near each other in time.

    centre(t) = a + (b − a) t / (T − 1)          from one random edge point to the opposite one
    frame     exp(−‖p − centre‖² / 2σ²) + noise

`TimePairs` draws a sequence, a frame t_1 of it and a frame t_2 with |t_1 − t_2| ≤ window, t_1 ≠ t_2: frames that are
near in time show nearly the same (DLN's temporal proximity as the positive signal).

Systems: siamese-contrastive
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from descend.data.streams.arrays import Drawn
from descend.errors import Mistake

SIGMA, NOISE = 1.5, 0.02  # pixels; of the pixels' values


def moving_spots(n: int, frames: int, side: int, random: torch.Generator) -> Tensor:
    """n sequences of frames: (n, frames, 1, side, side) in about 0..1."""
    if frames < 2:
        raise Mistake(f"{frames} frames: a sequence needs at least 2")
    angle = 2 * torch.pi * torch.rand(n, 1, generator=random)
    radius = 0.4 * side
    start = torch.cat([angle.cos(), angle.sin()], dim=1) * radius
    t = torch.linspace(-1, 1, frames)
    centre = side / 2 - start[:, None] * t[None, :, None]  # (n, frames, 2)
    grid = torch.arange(side) + 0.5
    across = (grid - centre[..., :1]).square()[:, :, None, :]
    down = (grid - centre[..., 1:]).square()[:, :, :, None]
    spot = torch.exp(-(across + down) / (2 * SIGMA**2))
    return (spot + NOISE * torch.randn(spot.shape, generator=random))[:, :, None]


class TimePairs:
    """An endless stream of pairs of frames x1, x2 of sequences (n, T, ..), with `group`, t1 and t2."""

    def __init__(self, sequences: Tensor, window: int, batch: int, seed: int = 0, rank: int = 0, world: int = 1):
        frames = sequences.shape[1]
        if not 1 <= window < frames:
            raise Mistake(f"window {window}: sequences of {frames} frames allow 1 to {frames - 1}")
        self.sequences, self.window = sequences, window
        self.order = Drawn(self.draw, batch, seed, rank, world)

    def draw(self, random: torch.Generator, n: int) -> dict[str, Tensor]:
        """Which sequence, and which two frames of it."""
        sequences, frames = self.sequences.shape[:2]
        group = torch.randint(sequences, (n,), generator=random)
        t1 = torch.randint(frames, (n,), generator=random)
        low, high = (t1 - self.window).clamp(min=0), (t1 + self.window).clamp(max=frames - 1)
        step = (torch.rand(n, generator=random) * (high - low)).long().minimum(high - low - 1)
        t2 = low + step
        return {"group": group, "t1": t1, "t2": t2 + (t2 >= t1)}

    def __next__(self) -> dict[str, Tensor]:
        batch = next(self.order)
        return {f"x{i}": self.sequences[batch["group"], batch[f"t{i}"]] for i in (1, 2)} | batch

    def state_dict(self) -> dict[str, Any]:
        return self.order.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.order.load_state_dict(state)
