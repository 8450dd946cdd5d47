"""Learning word vectors: negative sampling, and the two forms of GloVe. With the full softmax skip-gram and CBOW are
classification of words (`tasks.classify`).

    NegativeSampling   x (b) centres, words (b, 1 + k): the true neighbour, then k noise words
    LogCounts          i, j (b) and x (b), how often they stand together
    LogRatios          i, s, g (b) and r (b) = log P(i|g) / P(s|g)
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn

from descend.contracts import Batch, Move, Task
from descend.losses.word_vectors import glove, log_ratio, negative_sampling


class FromLosses(Task):
    """A task whose score is its loss, one value per example."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def losses(self, batch: Batch) -> Tensor:
        raise NotImplementedError

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("model", lambda: self.losses(batch).mean())

    def score(self, batch: Batch) -> dict[str, Tensor]:
        return {"loss": self.losses(batch)}


class NegativeSampling(FromLosses):
    """The true neighbour against noise."""

    def losses(self, batch: Batch) -> Tensor:
        scores = self.model(batch["x"], batch["words"])
        return negative_sampling(scores[:, 0], scores[:, 1:])


class LogCounts(FromLosses):
    """Published GloVe."""

    def losses(self, batch: Batch) -> Tensor:
        return glove(self.model(batch["i"], batch["j"]), batch["x"])


class LogRatios(FromLosses):
    """GloVe by triples."""

    def losses(self, batch: Batch) -> Tensor:
        return log_ratio(self.model(batch["i"], batch["s"], batch["g"]), batch["r"])
