"""Links of one graph, to predict those that are held out.

edges cut into train, valid, test; messages run along training edges only, in both directions
valid, test    their pairs (y = 1) and as many pairs that are linked in no part (y = 0), always the same
train          at every step all training pairs, and `negatives` pairs for each that are no training edge, drawn by
               seed and step. (To leave out held-out edges as well would tell a model where they are.)
hidden         a share of the training edges, others at every step: only these are predicted, and messages do not
               run along them; 0: all are predicted, and carry messages

popularity     s(u, v) = D_u D_v of the training edges: who has many links gets more
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from descend.contracts import Batch
from descend.data.graphs.attributed import AttributedGraph, link
from descend.errors import Mistake
from descend.seeds import generator

VALID, TEST = 1, 2  # keys of the draws of held-out negatives
ROUNDS = 64  # draws before a graph is called too dense
APART = 2**33  # keeps the seeds of the draws apart from those of other streams


class LinkPart:
    """Pairs (m, 2) of one part and whether each is linked (m)."""

    def __init__(self, positive: Tensor, negative: Tensor):
        self.positive, self.negative = positive, negative
        self.pairs = torch.cat([positive, negative])
        self.y = torch.cat([positive.new_ones(len(positive)), positive.new_zeros(len(negative))])

    def __len__(self) -> int:
        return len(self.pairs)


@dataclass(frozen=True, eq=False)
class LinkSplits:
    """The graph of the training edges, and the pairs of each part."""

    graph: AttributedGraph
    train: Tensor
    """Training pairs (m, 2), each once."""
    valid: LinkPart
    test: LinkPart
    names: tuple[str, ...]
    facts: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def whole(self) -> Batch:
        """The graph of all training edges as a batch; always the same tensors."""
        return self.graph.batch()

    def batch(self, part: str) -> Batch:
        """The graph, and the pairs of a held-out part."""
        return add_pairs(self.whole, {"valid": self.valid, "test": self.test}[part])

    def score_popularity(self, pairs: Tensor) -> Tensor:
        """s(u, v) = D_u D_v (m): what follows from the degrees alone, with what leaves u and what leads to v."""
        n, edges = len(self.graph), self.graph.edges
        leaving, leading = (torch.bincount(edges[:, k], minlength=n) for k in (0, 1))
        return (leaving[pairs[:, 0]] * leading[pairs[:, 1]]).double()


def add_pairs(whole: Batch, part: LinkPart) -> Batch:
    owner = torch.zeros(len(part), dtype=torch.long)
    return {**whole, "pairs": part.pairs, "pairs_owner": owner, "y": part.y, "y_owner": owner}


class LinkBatches:
    """An endless stream: the graph of the training edges, the pairs to predict, and fresh pairs without a link.

    Every process gets the same batch: there is one graph.
    """

    def __init__(self, splits: LinkSplits, seed: int = 0, negatives: int = 1, hidden: float = 0.0):
        self.splits, self.seed, self.negatives, self.step = splits, seed, negatives, 0
        self.hidden = round(hidden * len(splits.train))
        if hidden and not 0 < self.hidden < len(splits.train):
            raise Mistake(f"--data.hidden {hidden}: of {len(splits.train)} training edges that leaves all or none")
        n = len(splits.graph)
        self.taken = key_pairs(splits.train, n, splits.graph.directed).sort().values

    def __next__(self) -> Batch:
        splits, random = self.splits, generator(self.seed + APART, self.step)
        self.step += 1
        n, directed = len(splits.graph), splits.graph.directed
        whole, positive = splits.whole, splits.train
        if self.hidden:
            order = torch.randperm(len(positive), generator=random)
            carrying, positive = order[self.hidden :].sort().values, positive[order[: self.hidden].sort().values]
            attributes = splits.graph.pair_attributes
            graph = link(splits.graph.nodes, splits.train[carrying], directed, attributes[carrying])
            whole = graph.batch()
        negative = draw_unlinked(n, self.taken, self.negatives * len(positive), random, directed)
        return add_pairs(whole, LinkPart(positive, negative))

    def state_dict(self) -> dict[str, Any]:
        return {"step": self.step}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.step = state["step"]


def key_pairs(pairs: Tensor, n: int, directed: bool) -> Tensor:
    """A number for each pair (m), the same for both directions unless they differ."""
    if directed:
        return pairs[:, 0] * n + pairs[:, 1]
    return pairs.amin(dim=1) * n + pairs.amax(dim=1)


def draw_unlinked(n: int, taken: Tensor, count: int, random: torch.Generator, directed: bool) -> Tensor:
    """Pairs (count, 2) of different nodes, uniform among those whose keys are not in `taken`, which is in order."""
    found: list[Tensor] = []
    missing = count
    for _ in range(ROUNDS):
        pairs = torch.randint(n, (2 * missing + 16, 2), generator=random)
        keys = key_pairs(pairs, n, directed)
        free = (pairs[:, 0] != pairs[:, 1]) & ~is_among(keys, taken)
        found.append(pairs[free][:missing])
        missing -= len(found[-1])
        if not missing:
            return torch.cat(found)
    raise Mistake("nearly all pairs of nodes are linked: there is nothing to tell links from; give a sparser graph")


def is_among(keys: Tensor, ordered: Tensor) -> Tensor:
    """Which keys (m) are in a list that is in order."""
    if not len(ordered):
        return torch.zeros_like(keys, dtype=torch.bool)
    place = torch.searchsorted(ordered, keys).clamp_max(len(ordered) - 1)
    return ordered[place] == keys


def cut_links(
    graph: AttributedGraph, names: tuple[str, ...], valid: float, test: float, given: Tensor | None = None
) -> LinkSplits:
    """The links in these shares, or as `given` (m): 0 train, 1 valid, 2 test; the same cut for every run's seed."""
    pairs, n, m = graph.pairs, len(graph), len(graph.pairs)
    if given is None:
        part = torch.zeros(m, dtype=torch.long)
        order = torch.randperm(m, generator=generator(0, m))
        cuts = [round(m * test), round(m * (test + valid))]
        for k, rows in zip((TEST, VALID, 0), order.tensor_split(cuts), strict=True):
            part[rows] = k
    else:
        part = given
    for k, name in enumerate(("train", "valid", "test")):
        if not bool((part == k).any()):
            raise Mistake(f"no link is left for the {name} part: {m} links are too few; give more, or other shares")
    taken = key_pairs(pairs, n, graph.directed).sort().values
    held = {}
    for k in (VALID, TEST):
        positive = pairs[part == k]
        negative = draw_unlinked(n, taken, len(positive), generator(0, m, k), graph.directed)
        held[k] = LinkPart(positive, negative)
    kept = part == 0
    seen = link(graph.nodes, pairs[kept], graph.directed, graph.pair_attributes[kept], graph.context)
    return LinkSplits(seen, pairs[kept], held[VALID], held[TEST], names)
