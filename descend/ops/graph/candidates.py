"""Which pairs of nodes might be linked though they are not, and which of them a score ranks first.

    all pairs             of a graph of at most `MOST` nodes: n (n − 1) / 2, or n (n − 1) of a directed one
    two hops apart        of a larger graph: pairs with a common neighbour, where most new links come from

The score is asked in pieces, so that memory does not grow with the number of pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from descend.ops.graph.structure import Links

MOST = 3000  # nodes of a graph all of whose pairs are scored
PIECE = 2**18  # pairs that are scored together, at least
FAN = 32  # neighbours of a common neighbour that are looked at


def rank_new_links(
    score: Callable[[Tensor], Tensor], links: Links, directed: bool, count: int
) -> tuple[Tensor, Tensor]:
    """The `count` pairs (k, 2) without a link that score highest, the highest first, and their scores (k)."""
    n = links.n
    taken = (links.source * n + links.target).unique()
    best, scores = links.source.new_zeros(0, 2), torch.zeros(0, device=links.source.device)
    for pairs in list_pairs(links, directed):
        fresh = pairs[(pairs[:, 0] != pairs[:, 1]) & ~torch.isin(pairs[:, 0] * n + pairs[:, 1], taken)]
        if not len(fresh):
            continue
        found = score(fresh)
        keep = found.topk(min(count, len(found))).indices
        best, scores = torch.cat([best, fresh[keep]]), torch.cat([scores, found[keep]])
        kept = scores.argsort(descending=True, stable=True)[:count]
        best, scores = best[kept], scores[kept]
    return best, scores


def list_pairs(links: Links, directed: bool) -> Iterator[Tensor]:
    """Pairs (m, 2) in pieces; of an undirected graph from the smaller number to the larger, each once."""
    n = links.n
    rows = max(1, PIECE // max(n, 1))
    every = torch.arange(n, device=links.source.device)
    for start in range(0, n, rows):
        front = every[start : start + rows]
        keys = every[None] + front[:, None] * n if n <= MOST else two_hops(front, links)
        pairs = torch.stack([keys.flatten() // n, keys.flatten() % n], dim=1)
        yield pairs if directed else pairs[pairs[:, 0] < pairs[:, 1]]


def two_hops(front: Tensor, links: Links) -> Tensor:
    """u n + v of all v that are two edges away from a node u of the front."""
    there = follow(front, links)
    back = follow(there[:, 1], links, FAN)
    return (there[back[:, 2], 0] * links.n + back[:, 1]).unique()


def follow(nodes: Tensor, links: Links, most: int = 0) -> Tensor:
    """Of nodes (m): rows (node, a node that it leads to, which of the m) for each of their edges, at most so many."""
    rows = links.outgoing
    counts = rows.counts[nodes] if not most else rows.counts[nodes].clamp_max(most)
    which = torch.arange(len(nodes), device=nodes.device).repeat_interleave(counts)
    within = torch.arange(len(which), device=nodes.device) - (counts.cumsum(0) - counts)[which]
    edge = rows.order[rows.starts[nodes[which]] + within]
    return torch.stack([nodes[which], links.target[edge], which], dim=1)
