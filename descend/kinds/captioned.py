"""Batches of images with captions, for recipes that learn from both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from descend.contracts import Batch
from descend.data.images.captions import Captioned, caption_tokens, pixels
from descend.data.streams.arrays import InOrder, Shuffled
from descend.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Texts:
    """Captions to tokens."""

    tokenizer: Tokenizer
    longest: int

    def __call__(self, captions: list[str]) -> Tensor:
        return caption_tokens(self.tokenizer, captions, self.longest)

    def arrays(self, part: Captioned) -> dict[str, Tensor]:
        found = {"x": part.x, "tokens": self(part.captions)}
        return found if part.y is None else {**found, "y": part.y}


class CaptionedStream:
    """A stream whose 8-bit images become what the model reads, batch by batch."""

    def __init__(self, inner: Shuffled):
        self.inner = inner

    def __next__(self) -> Batch:
        return prepare_batch(next(self.inner))

    def state_dict(self) -> dict[str, Any]:
        return self.inner.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.inner.load_state_dict(state)


class CaptionedInOrder(InOrder):
    """The same for validation."""

    def __iter__(self) -> Iterator[Batch]:
        return (prepare_batch(batch) for batch in super().__iter__())


def prepare_batch(batch: Batch) -> Batch:
    """The images as numbers; texts of any length fill the same columns, so that batches can be brought together."""
    return {**batch, "x": pixels(batch["x"])}
