"""Judging a generator: its samples against real images, as a named network sees them.

Figures of different networks, or of different numbers of images, cannot be compared. So the network is named with the
first digits of the checksum of its weights, n is told, and real images against other real images, at the same n, stand
beside: that is the best that can be expected.

Systems: fid
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from descend.contracts import HasFeatures
from descend.data.images.labelled import PREPROCESSOR, Preprocessing, resize
from descend.errors import Mistake
from descend.inference.trained import BATCH, Trained, load_trained
from descend.metrics.frechet import fid
from descend.metrics.generated import kid, precision_and_recall, share_memorised

DIGITS = 12  # of the checksum
LEAST = 8  # images of each


@dataclass(frozen=True)
class Judge:
    """A trained classifier whose features stand for what an image shows."""

    trained: Trained
    prepare: Preprocessing

    @classmethod
    def open(cls, run: str | Path, checkpoint: str | int = "best") -> Judge:
        """From a run of a classifier of images."""
        trained = load_trained(run, checkpoint)
        if not isinstance(trained.model, HasFeatures) or not (trained.folder / PREPROCESSOR).exists():
            raise Mistake(
                f"{trained.folder} holds a {trained.kind}, which has no features of images; give --by the run of a "
                f"classifier, for example of: descend train lenet-digits"
            )
        return cls(trained, Preprocessing.read(trained.folder))

    @property
    def name(self) -> str:
        """The network and its weights."""
        return f"{self.trained.kind} {digest_weights(self.trained.model)}"

    def look(self, images: Tensor) -> Tensor:
        """Features (n, d) of images (n, c, h, w) in 0..1."""
        return self.see(images, self.trained.model.features).flatten(1)

    def read(self, images: Tensor) -> Tensor:
        """The class (n) that each image is read as."""
        return self.see(images, self.trained.model).argmax(-1)

    @torch.no_grad()
    def see(self, images: Tensor, ask: Callable[[Tensor], Tensor]) -> Tensor:
        """What the network says of images, brought to the size that it knows, a batch at a time."""
        channels, height, width = self.prepare.image
        if images.shape[1] != channels:
            raise Mistake(
                f"the images have {images.shape[1]} channels, the network of --by sees {channels}; train another"
            )
        parts = (self.prepare.standardize(resize(part, height, width)) for part in images.split(BATCH))
        return torch.cat([ask(part.to(self.trained.device)).cpu() for part in parts])

    def compare(self, made: Tensor, real: Tensor) -> dict[str, float]:
        """Distances of generated to real images, as many of each; images in 0..1."""
        x, y = self.look(made), self.look(real)
        precision, recall = precision_and_recall(y, x)
        return {"fid": fid(x, y), "kid": kid(x, y), "precision": precision, "recall": recall}

    def report(self, made: Tensor, real: Tensor, others: Tensor, train: Tensor | None = None) -> dict[str, object]:
        """All figures, with what they depend on: the network, n, and real images against `others`, as many."""
        n = min(len(made), len(real), len(others))
        if n < LEAST:
            raise Mistake(
                f"{n} images of each: at least {LEAST} are needed; give a larger --count and more test images"
            )
        found = self.compare(made[:n], real[:n])
        best = self.compare(others[:n], real[:n])
        told: dict[str, object] = {"network": self.name, "n": n, **found}
        told |= {f"real_{name}": value for name, value in best.items()}
        told["fid_ratio"] = found["fid"] / best["fid"]
        if train is not None:
            told["memorised"] = share_memorised(made[:n], train, real[:n])
        return told


def digest_weights(model: nn.Module) -> str:
    """The first digits of a checksum of all parameters and buffers, by name."""
    found = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        found.update(name.encode())
        found.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return found.hexdigest()[:DIGITS]
