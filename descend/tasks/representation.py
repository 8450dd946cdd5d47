"""What tasks that learn representations without labels share: how their vectors are judged.

    probe      a linear classifier fitted to the frozen vectors of labelled training images, tested on held-out ones
    knn        the classes of the nearest labelled vectors
    spread     how far unit vectors spread in all directions: 1 is healthy, 0 is collapse        (`metrics/neighbours`)
    rank       how many directions they use

A validation batch has images x, their labels y, and `known` (b), true for the labelled training images that the probe
is fitted to. Labels are never trained on. With two views x1, x2, `alignment` is the cosine of their projections.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, Protocol

import torch
from torch import Tensor

from descend.contracts import Batch, Task
from descend.losses.metric_learning import cosine
from descend.metrics.neighbours import effective_rank, fitted_probe_accuracy, neighbour_accuracy, spread


class Embedder(Protocol):
    """A model with representations and projections of images."""

    def features(self, x: Tensor) -> Tensor: ...

    def project(self, x: Tensor) -> Tensor: ...


class Predictor(Embedder, Protocol):
    """One that also predicts the projection of the other view."""

    def predict(self, z: Tensor) -> Tensor: ...


class Representation(Task):
    """A task whose vectors are judged by a probe and by neighbours."""

    evidence = ("features", "labels", "known")

    @abstractmethod
    def embed(self, x: Tensor) -> Tensor:
        """The representation of images (b, d)."""

    def score(self, batch: Batch) -> dict[str, Tensor]:
        """Vectors, labels, and what is measured of each image."""
        known = batch["known"] if "known" in batch else torch.zeros_like(batch["y"], dtype=torch.bool)
        found = {"features": self.embed(batch["x"]), "labels": batch["y"], "known": known}
        return found | ({} if known.all() else self.measure(batch))

    def measure(self, batch: Batch) -> dict[str, Tensor]:
        """Scores of held-out images, one value for each."""
        return {}

    def judge(self, means: dict[str, float], evidence: dict[str, Any]) -> dict[str, float]:
        x, y, known = (evidence[name] for name in self.evidence)
        if known.all() or not known.any():  # two examples that only show which scores there are
            return means | dict.fromkeys(("probe", "knn", "spread", "rank"), math.nan)
        held_out = x[~known], y[~known], x[known], y[known]
        return means | {
            "probe": fitted_probe_accuracy(*held_out),
            "knn": neighbour_accuracy(*held_out),
            "spread": spread(x[~known]),
            "rank": effective_rank(x[~known]),
        }


class JointEmbedding(Representation):
    """A task on two views, x1 and x2, of every image."""

    model: Any

    def embed(self, x: Tensor) -> Tensor:
        found: Tensor = self.model.features(x)
        return found

    def measure(self, batch: Batch) -> dict[str, Tensor]:
        return {"alignment": cosine(self.model.project(batch["x1"]), self.model.project(batch["x2"]))}
