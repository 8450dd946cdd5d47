"""A judge of generated images: a small network that was trained to read the classes of the real ones.

    distance    Fréchet distance of its features, generated against held-out images, as a multiple of that of as many
                training images: 1 is as near as real ones are
    classes     classes that generated images are read as, each by at least a fifth of an equal share
    coverage    their share of all classes
    sure        mean of its largest probability
    right       of images that were made for a class: the share that is read as that class

It takes the place that Inception-v3 has for photographs, so figures of different judges cannot be compared: this one is
named by its layers and its training. Without classes, features are the pixels of images shrunk to 4×4. It is trained
when it is first asked, from a seed of its own, and is no part of the run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.data.images.labelled import Preprocessing, Splits
from descend.engine.minimise import minimise
from descend.metrics.frechet import frechet_distance
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

STEPS, BATCH, MOST = 250, 64, 4000  # of training; images of each part that are looked at
NAME = "conv 16-32, dense 64, 250 steps of 64"


class Reader(nn.Module):
    """images (b, c, h, w) -> logits (b, classes); `features` (b, 64) are what is compared."""

    def __init__(self, channels: int, classes: int):
        super().__init__()
        self.first, self.second = nn.Conv2d(channels, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1)
        self.dense, self.head = nn.Linear(32 * 16, 64), nn.Linear(64, classes)

    def features(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(self.first(x).relu(), 2) if min(x.shape[2:]) >= 16 else self.first(x).relu()
        x = F.adaptive_avg_pool2d(self.second(x).relu(), 4)
        found: Tensor = self.dense(x.flatten(1)).relu()
        return found

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.features(x))
        return logits


class ImageJudge:
    """Judges images that are prepared as the training images are."""

    evidence = ("features", "read")

    def __init__(self, load: Callable[[], Splits], prepare: Preprocessing):
        self.load, self.prepare = load, prepare

    @cached_property
    def splits(self) -> Splits:
        return self.load()

    @property
    def classes(self) -> int:
        """Of the data; 0 where there are none to tell apart."""
        return len(self.prepare.labels) if len(self.prepare.labels) > 1 else 0

    @cached_property
    def reader(self) -> Reader:
        """Trained on the training images, the same every time."""
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.manual_seed(0)
            model, random = Reader(self.prepare.image[0], self.classes), torch.Generator().manual_seed(0)
            train = self.splits.train

            def loss() -> Tensor:
                rows = torch.randint(len(train.y), (BATCH,), generator=random)
                return F.cross_entropy(model(self.take(train, rows)), train.y[rows])

            minimise(model, loss, STEPS, AdamW(5e-3), Cosine(warmup=25), clip=1.0)
        return model.eval()

    def take(self, images: Any, rows: Tensor) -> Tensor:
        """Prepared images."""
        return self.prepare.standardize(images.x[rows])

    @cached_property
    def real(self) -> Tensor:
        """Features of held-out images."""
        valid = self.splits.valid
        return self.look(self.take(valid, torch.arange(min(MOST, len(valid.y)))))

    def between_real(self, n: int) -> float:
        """The Fréchet distance of n training images."""
        train = self.splits.train
        rows = torch.arange(min(n, len(train.y)))
        return max(frechet_distance(self.look(self.take(train, rows)), self.real), 1e-12)

    @torch.no_grad()
    def look(self, x: Tensor) -> Tensor:
        """Features of images."""
        if not self.classes:
            return F.adaptive_avg_pool2d(x, 4).flatten(1)
        return torch.cat([self.reader.features(part) for part in x.split(512)])

    @torch.no_grad()
    def __call__(self, made: Tensor, *given: Tensor) -> dict[str, Tensor]:
        made = made.float().cpu()
        features = self.look(made)
        if not self.classes:
            return {"features": features, "read": torch.zeros(len(made), dtype=torch.long)}
        p = self.reader.head(features).softmax(-1)
        read = p.argmax(-1)
        right = {"right": (read == given[0].cpu()).float()} if given else {}
        return {"features": features, "read": read, "sure": p.amax(-1), **right}

    def judge(self, means: dict[str, float], evidence: dict[str, Any]) -> dict[str, float]:
        """The scores of all images together."""
        found = dict(means)
        if len(evidence["features"]) > 1:
            made = evidence["features"]
            found["distance"] = frechet_distance(made, self.real) / self.between_real(len(made))
        if self.classes:
            shares = evidence["read"].bincount(minlength=self.classes) / len(evidence["read"])
            found["classes"] = float((shares >= 0.2 / self.classes).sum())
            found["coverage"] = found["classes"] / self.classes
        return found

    def describe(self) -> dict[str, str]:
        """The fact to tell."""
        return {"judge": NAME if self.classes else "pixels of images shrunk to 4×4"}
