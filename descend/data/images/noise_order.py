"""Images with a random number for every patch, whose order says which patches are hidden (a masked autoencoder's).

The numbers, and the changes of the image, belong to seed, epoch and row.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from descend.data.images.views import DrawnLoad

Batch = dict[str, Tensor]


@dataclass(frozen=True)
class LoadNoise(DrawnLoad):
    """{"row", "u", ..} -> {"x", "noise" (b, N) in 0..1, ..}"""

    patches: int = 1

    @property
    def chance(self) -> int:
        return self.augment.chance + self.patches

    def __call__(self, batch: Batch) -> Batch:
        batch = dict(batch)
        x, u = self.pixels[batch["row"]], batch.pop("u")
        changes, noise = u.split([self.augment.chance, self.patches], dim=1)
        changed = self.augment(x, changes) if self.augment.transforms else x
        return {"x": self.prepare.standardize(changed), "noise": (noise + 1) / 2, **batch}
