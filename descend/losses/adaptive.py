"""The adaptive softmax: a softmax over very many classes, most of them rare, at a fraction of the cost.

    classes sorted by frequency, cut at c_1 < c_2 < … < V;   head = c_1 frequent classes + one entry for each cluster
    log p(y | x) = log p(y | head)                                       y < c_1
    log p(y | x) = log p(cluster_i | head) + log p(y | cluster_i)        c_i ≤ y < c_{i+1}
    cluster_i    x -> x P_i (d -> d / r^i) -> logits of its classes      rarer classes get fewer dimensions

A cluster is computed only for the examples whose class lies in it. The probabilities add up to 1.
Erratum: DLN says that the loss values are those of the cross-entropy. It is the same kind of objective on another model
(tails of lower rank), so its values differ; with one class in each cluster it is a full softmax.

The tensors have the names and shapes of torch's nn.AdaptiveLogSoftmaxWithLoss without head bias.

Systems: adaptive-log-softmax
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from descend.errors import Mistake
from descend.losses.checks import label_range, label_shape
from descend.losses.classification import cross_entropy


class AdaptiveSoftmax(nn.Module):
    """`model(x, y)` gives the loss of each example; `log_prob(x)` and `predict(x)` need no class."""

    cuts: Tensor

    def __init__(self, width: int, classes: int, cutoffs: Sequence[int], ratio: float = 4.0):
        super().__init__()
        edges = [*cutoffs, classes]
        if not cutoffs or cutoffs[0] < 1 or any(low >= high for low, high in pairwise(edges)):
            raise Mistake(f"cutoffs {list(cutoffs)}: give whole numbers that rise, from 1 to below {classes}")
        if int(width / ratio ** len(cutoffs)) < 1:
            raise Mistake(f"ratio {ratio}: cluster {len(cutoffs)} would have less than 1 of {width} dimensions")
        self.edges = edges
        self.register_buffer("cuts", torch.tensor(list(cutoffs)), persistent=False)
        self.head = nn.Linear(width, cutoffs[0] + len(cutoffs), bias=False)
        self.tail = nn.ModuleList()
        for i, (low, high) in enumerate(pairwise(edges)):
            rank = int(width / ratio ** (i + 1))
            self.tail.append(nn.Sequential(nn.Linear(width, rank, bias=False), nn.Linear(rank, high - low, bias=False)))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """−log p(y | x) of each example: x (.., d), classes y (..) -> (..)."""
        label_shape(x, y, "embeddings")
        label_range(y, self.edges[-1])
        shape, x, y = y.shape, x.reshape(-1, x.shape[-1]), y.reshape(-1)
        cluster = torch.bucketize(y, self.cuts, right=True)  # 0: the class is in the head
        losses = cross_entropy(self.head(x), torch.where(cluster == 0, y, self.edges[0] + cluster - 1))
        for i, tail in enumerate(self.tail):
            rows = (cluster == i + 1).nonzero().squeeze(-1)
            if len(rows):
                losses = losses.index_add(0, rows, cross_entropy(tail(x[rows]), y[rows] - self.edges[i]))
        return losses.view(shape)

    def log_prob(self, x: Tensor) -> Tensor:
        """log p of every class: x (.., d) -> (.., V)."""
        head = self.head(x).log_softmax(-1)
        frequent, clusters = head[..., : self.edges[0]], head[..., self.edges[0] :]
        tails = [clusters[..., i, None] + tail(x).log_softmax(-1) for i, tail in enumerate(self.tail)]
        return torch.cat([frequent, *tails], dim=-1)

    def predict(self, x: Tensor) -> Tensor:
        """The most likely class: x (.., d) -> (..). A frequent class that beats every cluster wins."""
        rows = x.reshape(-1, x.shape[-1])
        best = self.head(rows).argmax(-1)
        unsure = best >= self.edges[0]
        if unsure.any():
            best[unsure] = self.log_prob(rows[unsure]).argmax(-1)
        return best.view(x.shape[:-1])
