"""Distances, connected components and rings: what the links tell without any attribute.

    distance         edges of a shortest path, all sources at once: a step is one sparse product of what was reached
    components       nodes that paths connect, whichever way their edges point
    cycle rank       E − V + components: independent rings of each graph, an undirected edge counted once

DLN's karate club: each member is predicted to take the side of the leader who is nearer; 28 are right, and for 6 both
are as far.

Systems: graph-task-labs
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.ops.graph.aggregate import sum_groups, sum_neighbours
from descend.ops.graph.structure import Links


def distances(links: Links, sources: Tensor) -> Tensor:
    """Hops from each source (s) to each node, along the edges (n, s); −1 where no path leads."""
    found = torch.full((links.n, len(sources)), -1, device=sources.device)
    reached = torch.zeros(found.shape, device=sources.device)
    reached[sources, torch.arange(len(sources), device=sources.device)] = 1
    hops = 0
    while reached.any():
        found[reached > 0] = hops
        reached = ((sum_neighbours(reached, links) > 0) & (found < 0)).float()
        hops += 1
    return found


def choose_nearest(links: Links, leaders: Tensor) -> Tensor:
    """The place in `leaders` (s) of the one that is nearest to each node (n); −1 where two are as near, or none is."""
    hops = distances(links, leaders)
    hops = torch.where(hops < 0, links.n, hops)
    least, place = hops.min(dim=1)
    clear = ((hops == least[:, None]).sum(dim=1) == 1) & (least < links.n)
    return torch.where(clear, place, -1)


def components(links: Links) -> Tensor:
    """The smallest node of the component of each node (n): minima spread along edges, and jump to what they name."""
    name = torch.arange(links.n, device=links.source.device)
    while True:
        before = name
        for to, other in ((links.target, links.source), (links.source, links.target)):
            name = name.scatter_reduce(0, to, name[other], "amin")
        name = name[name]
        if torch.equal(name, before):
            return name


def count_components(links: Links) -> Tensor:
    """Components of each graph (g)."""
    first = components(links) == torch.arange(links.n, device=links.source.device)
    return sum_groups(first.long(), links.owner, links.graphs)


def cycle_rank(links: Links) -> Tensor:
    """E − V + components of each graph (g), of undirected graphs: each edge is there in both directions."""
    edges = sum_groups((links.source <= links.target).long(), links.edge_owner, links.graphs)
    return edges - links.sizes + count_components(links)
