"""Worked examples of graph layers: what a node hears, by each of the named layers, and how far it hears."""

from __future__ import annotations

import networkx as nx
import torch
from torch import Tensor, nn

from descend.catalog.examples import Compute, Inputs, real
from descend.metrics.node_order import count_matrices, node_order_error
from descend.nn.graph.attention import AdditiveScore, GraphAttention
from descend.nn.graph.convolution import KipfConvolution, MeanConvolution, SymmetricConvolution
from descend.nn.graph.isomorphism import FixedEpsilon, IsomorphismLayer
from descend.nn.graph.message_passing import AddedUpdate, MessagePassing, SourceMessage
from descend.nn.graph.sage import InclusiveMean, PooledMax
from descend.ops.graph.aggregate import softmax_groups, sum_groups, sum_neighbours
from descend.ops.graph.structure import Graph, Links, build_graph


def link(adjacency: Tensor) -> Links:
    """Of a matrix, A_vu = 1 for an edge u → v."""
    target, source = adjacency.nonzero(as_tuple=True)
    return Links(source, target, torch.zeros(len(adjacency), dtype=torch.long), 1)


def star(neighbours: int) -> Links:
    """Node 0 hears all others."""
    source = torch.arange(1, neighbours + 1)
    return Links(source, torch.zeros_like(source), torch.zeros(neighbours + 1, dtype=torch.long), 1)


def path(n: int) -> Links:
    return link(torch.tensor(nx.to_numpy_array(nx.path_graph(n))))


def set_weights(module: nn.Module, **values: Tensor) -> None:
    """Parameters of given values."""
    module.double()
    with torch.no_grad():
        for name, value in values.items():
            module.get_parameter(name.replace("__", ".")).copy_(value)


def permutations(i: Inputs) -> Inputs:
    orders, matrices = count_matrices(path(4).adjacency())
    return {"permutations": orders, "distinct_matrices": matrices}


def equivariance(i: Inputs) -> Inputs:
    links = link(torch.tensor(nx.to_numpy_array(nx.karate_club_graph(), weight=None)))
    random = torch.Generator().manual_seed(i["seed"])
    nodes = torch.randn(links.n, i["feature_dim"], generator=random, dtype=torch.float64)
    graph = build_graph(nodes, torch.stack([links.source, links.target], dim=1))
    error = node_order_error(lambda graph: sum_neighbours(graph.nodes, graph.links), graph, random)
    return {"max_abs_difference_below_1e-10": error < 1e-10}


def farthest(links: Links, layers: int) -> int:
    """The last node of a path that matters to the first, by the gradient."""
    layer = MessagePassing(SourceMessage(), "sum", AddedUpdate(nn.Identity(), FixedEpsilon()))
    x = torch.ones(links.n, 1, dtype=torch.float64, requires_grad=True)
    graph = Graph(links, x, x.new_zeros(links.e, 0), x.new_zeros(1, 0))
    for _ in range(layers):
        graph = layer(graph)
    (slope,) = torch.autograd.grad(graph.nodes[0].sum(), x)
    return int(slope.nonzero()[:, 0].max())


def hops(i: Inputs) -> Inputs:
    return {"hops": [farthest(path(8), k) for k in i["layers"]]}


def nodes_seen(i: Inputs) -> Inputs:
    return {"nodes_seen": [farthest(path(7), k) + 1 for k in i["K"]]}


def convolve(layer: nn.Module, i: Inputs) -> Tensor:
    """H' with the matrices of the example."""
    if isinstance(layer, KipfConvolution):
        set_weights(layer, linear__weight=real(i["W"]))
    else:
        set_weights(layer, neighbours__weight=real(i["W"]), own__weight=real(i["B"]))
    found: Tensor = layer(real(i["H"]), link(real(i["A"])))
    return found


def gcn_mean(i: Inputs) -> Inputs:
    return {"H_next": convolve(MeanConvolution(2, 2), i)}


def gcn_symmetric(i: Inputs) -> Inputs:
    kipf = convolve(KipfConvolution(2, 2), i)
    return {"H_next": convolve(SymmetricConvolution(2, 2), i), "original_paper_self_loop_form": kipf}


def normalisation(i: Inputs) -> Inputs:
    """Â by its columns: what each unit vector becomes."""
    a, n = real(i["A"]), len(i["A"])
    layer = KipfConvolution(n, n)
    set_weights(layer, linear__weight=torch.eye(n))
    normalised = layer(torch.eye(n, dtype=torch.float64), link(a))
    return {
        "A_hat": normalised,
        "eigenvalues": torch.linalg.eigvalsh(normalised),
        "unnormalised_eigenvalues": torch.linalg.eigvalsh(link(a).looped.adjacency().double()),
    }


def gat_normaliser(i: Inputs) -> Inputs:
    """A = exp(0.1 h_v · h_u), first as printed, with a normaliser over N(v) alone, then over v, too."""
    h, v = real(i["h"]), i["v"]
    members = torch.tensor([v, *i["neighbours"]])
    score = 0.1 * h[members] @ h[v]
    scores = score.exp()
    over_neighbours = scores / scores[1:].sum()
    share = softmax_groups(score, torch.zeros_like(members), 1)
    return {
        "sum_over_neighbours": over_neighbours[1:].sum(),
        "sum_including_alpha_vv": over_neighbours.sum(),
        "with_v_in_the_normaliser": share,
        "sum_then": sum_groups(share, torch.zeros_like(members), 1)[0],
    }


def gat_attention(i: Inputs) -> Inputs:
    """Node 0 hears nodes 1 and 2, and itself by the loop of the layer."""
    here, there = real(i["a"]).chunk(2)
    layer = GraphAttention(2, 1, 2, AdditiveScore(1, 2, i["negative_slope"]), nn.Flatten(1))
    set_weights(layer, linear__weight=real(i["W"]), score__target=here[None], score__source=there[None])
    h, links = real(i["H"]), star(2)
    y, share = layer.attend(h, links)
    e = layer.score(layer.linear(h).view(-1, 1, 2), links.looped)
    own_first = [2, 0, 1]  # edges to node 0, then its loop
    return {"e": e[own_first, 0], "alpha": share[own_first, 0], "h_before_sigma": y[0]}


def sage_aggregators(i: Inputs) -> Inputs:
    rows = real([i["h_v"], *i["neighbours"]])
    links, w = star(len(i["neighbours"])), real(i["W_pool"])
    mean, largest = InclusiveMean(2, 2), PooledMax(2, 2)
    set_weights(mean, pool__weight=w)
    set_weights(largest, pool__weight=w, pool__bias=real(i["b"]))
    return {
        "mean": mean.gather(rows, links)[0],
        "max": largest.gather(rows, links)[0],
        "mean_order_swapped": mean.gather(rows[[0, 2, 1]], links)[0],
    }


def gin_epsilon(i: Inputs) -> Inputs:
    rows, links = real([i["h_v"], *i["neighbours"]]), star(len(i["neighbours"]))
    layers = {f"eps_{eps}": IsomorphismLayer(nn.Identity(), FixedEpsilon(eps)) for eps in i["eps"]}
    return {name: layer(rows, links)[0] for name, layer in layers.items()}


EXAMPLES: dict[str, Compute] = {
    "DLN-Challenges-permutations": permutations,
    "DLN-MessagePassing-equivariance": equivariance,
    "DLN-MessagePassing-khop": hops,
    "S940-10.2-k-hop": nodes_seen,
    "DLN-GCN-mean": gcn_mean,
    "DLN-GCN-sym": gcn_symmetric,
    "S940-10.3-gcn-normalisation": normalisation,
    "DLN-GAT-normaliser": gat_normaliser,
    "S940-10.4-gat-attention": gat_attention,
    "DLN-GraphSAGE-aggregators": sage_aggregators,
    "DLN-GIN-eps": gin_epsilon,
}

SET_ASIDE: dict[str, str] = {}
