"""Images with the places of I-JEPA: blocks to predict, and the patches to predict them from.

The places, and the changes of the image, belong to seed, epoch and row (`ops/images/target_blocks`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from descend.data.images.views import DrawnLoad
from descend.ops.images.target_blocks import choose_context, place_blocks
from descend.ranges import Depth, Side

Batch = dict[str, Tensor]


@dataclass(frozen=True)
class TargetBlocks:
    """Which patches are predicted from which."""

    count: Depth = 4
    """Blocks to predict."""
    height: Side = 3
    """Patches of a block, from top to bottom."""
    width: Side = 3
    """Patches of a block, from left to right."""

    def context(self, grid: tuple[int, int]) -> int:
        """K, the patches that are left for the context however the blocks lie."""
        return grid[0] * grid[1] - self.count * self.height * self.width


@dataclass(frozen=True)
class LoadBlocks(DrawnLoad):
    """{"row", "u", ..} -> {"x", "context", "targets", ..}"""

    blocks: TargetBlocks = field(default_factory=TargetBlocks)
    grid: tuple[int, int] = (8, 8)

    @property
    def chance(self) -> int:
        """Random numbers of an image."""
        return self.augment.chance + 2 * self.blocks.count + self.grid[0] * self.grid[1]

    def __call__(self, batch: Batch) -> Batch:
        batch = dict(batch)
        x, u = self.pixels[batch["row"]], batch.pop("u")
        changes, blocks, order = u.split([self.augment.chance, 2 * self.blocks.count, self.grid[0] * self.grid[1]], 1)
        corners = ((blocks + 1) / 2).unflatten(1, (self.blocks.count, 2))
        targets = place_blocks(corners, self.grid, (self.blocks.height, self.blocks.width))
        context = choose_context(order, targets, self.blocks.context(self.grid))
        changed = self.augment(x, changes) if self.augment.transforms else x
        return {"x": self.prepare.standardize(changed), "context": context, "targets": targets, **batch}
