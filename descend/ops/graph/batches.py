"""Batches of graphs, as streams cut and join them, and the graph that a layer sees.

    nodes (n, d), nodes_owner (n)               edges (e, 2), edges_owner (e): nodes numbered within their graph
    edge_attributes (e, k), edge_attributes_owner (e)      context (b, u)            the last three where there are any

    node i of graph g is node  i + Σ_{h < g} n_h  of the whole

When the same tensors come again, as those of one large graph do at every step, so do the same links, with all that has
been derived from them.
"""

from __future__ import annotations

from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from descend.contracts import Batch
from descend.ops.graph.structure import Graph, Links

kept: WeakTensorKeyDictionary = WeakTensorKeyDictionary()
"""Edges -> the versions of the tensors, and the links that were made of them; gone when the edges are."""


def read_graph(batch: Batch) -> Graph:
    """One graph of all graphs of a batch; its edges are numbered through."""
    owner, graphs = batch["nodes_owner"], len(batch["ids"])
    nodes, links = batch["nodes"], find_links(batch["edges"], batch["edges_owner"], owner, graphs)
    return Graph(
        links,
        nodes,
        batch.get("edge_attributes", nodes.new_zeros(links.e, 0)),
        batch.get("context", nodes.new_zeros(graphs, 0)),
    )


def find_links(edges: Tensor, edges_owner: Tensor, owner: Tensor, graphs: int) -> Links:
    """The links of these tensors, made when they come for the first time or have changed."""
    if edges.is_inference() or owner.is_inference():  # nothing says whether those have changed
        return number_through(edges, edges_owner, owner, graphs)
    versions = (edges._version, owner._version, graphs)
    if edges not in kept or kept[edges][0] != versions or kept[edges][1].owner is not owner:
        kept[edges] = (versions, number_through(edges, edges_owner, owner, graphs))
    links: Links = kept[edges][1]
    return links


def number_through(edges: Tensor, edges_owner: Tensor, owner: Tensor, graphs: int) -> Links:
    """Links of edges (e, 2) that are numbered within their graphs."""
    source, target = edges.t().clone()  # not a part of `edges`, which could then never be forgotten
    links = Links(source, target, owner, graphs)
    if graphs > 1:
        sizes = links.sizes
        first = (sizes.cumsum(0) - sizes).index_select(0, edges_owner)
        source += first
        target += first
    return links
