"""Small random shifts, turns and changes of size: images that a person would call the same.

    x'(p) = x(e^s R(θ) p + t)        θ, s, t uniform in ± their limits; p runs over −1..1 from edge to edge

Each image's four random numbers come with the batch (`u`), so that what happens to an image in an epoch does not
depend on how the epoch is cut into batches. Outside the image is black (0), or what a mirror at its edge would show:
black corners tell how far an object is from the middle. Too large a turn makes a 6 a 9: the limits belong to the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from descend.ranges import Range, Share


@dataclass(frozen=True)
class Warp:
    """Limits of the random warp; all 0: none."""

    shift: Share = 0.0
    """Largest shift, as a share of the image's side."""
    turn: Annotated[float, Range(float, least=0, most=180)] = 0.0
    """Largest rotation, in degrees."""
    zoom: Annotated[float, Range(float, least=0, most=3)] = 0.0
    """Largest change of the logarithm of the size; 0.1 is about 10%."""
    outside: Literal["zeros", "reflection"] = "zeros"
    """What comes in from outside the image: black, or its mirror image."""
    chance = 4

    @property
    def idle(self) -> bool:
        return not (self.shift or self.turn or self.zoom)

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        """Images (b, c, h, w) warped by u (b, 4) in −1..1."""
        return grid_sample(x, self.grid(x, u), padding_mode=self.outside, align_corners=False)

    def grid(self, x: Tensor, u: Tensor) -> Tensor:
        """Where each pixel of the warped images comes from (b, h, w, 2)."""
        theta, size = math.radians(self.turn) * u[:, 2], (self.zoom * u[:, 3]).exp()
        cos, sin, t = size * theta.cos(), size * theta.sin(), 2 * self.shift * u[:, :2]
        rows = torch.stack([cos, -sin, t[:, 0]], dim=1), torch.stack([sin, cos, t[:, 1]], dim=1)
        return affine_grid(torch.stack(rows, dim=1), list(x.shape), align_corners=False)


class Source(Protocol):
    """A stream whose batches bring u (b, 4)."""

    def __next__(self) -> dict[str, Tensor]: ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class Warped:
    """A stream whose x becomes warp(x, u)."""

    def __init__(self, source: Source, warp: Callable[[Tensor, Tensor], Tensor]):
        self.source, self.warp = source, warp

    def __next__(self) -> dict[str, Tensor]:
        batch = next(self.source)
        u = batch.pop("u")
        return {**batch, "x": self.warp(batch["x"], u)}

    def state_dict(self) -> dict[str, Any]:
        return self.source.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.source.load_state_dict(state)
