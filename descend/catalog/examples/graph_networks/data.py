"""Worked examples of graphs as data: sizes, lists of edges, images and texts as graphs, sampled neighbours."""

from __future__ import annotations

from itertools import combinations

import torch
from torch import Tensor

from descend.catalog.examples import Compute, Inputs
from descend.data.graphs.attributed import AttributedGraph
from descend.data.graphs.converters import convert_image, convert_text
from descend.data.graphs.karate import load_karate
from descend.data.graphs.sampling import variance_of_mean
from descend.data.graphs.statistics import density, mean_degree, measure_graphs
from descend.ops.graph.batches import read_graph


def karate(i: Inputs) -> Inputs:
    found = measure_graphs([load_karate().graph])
    return {
        "nodes": found.nodes,
        "edges": found.edges,
        "min_degree": found.least,
        "mean_degree": found.mean,
        "max_degree": found.most,
    }


def cora(i: Inputs) -> Inputs:
    return {"mean_degree": mean_degree(i["nodes"], i["edges"])}


def wikipedia(i: Inputs) -> Inputs:
    """The counts are rounded to a million, so the mean degree lies in a range."""
    n, e = i["nodes_million"], i["edges_million"]
    return {"mean_degree": mean_degree(n, e), "range": [mean_degree(n + 0.5, e - 0.5), mean_degree(n - 0.5, e + 0.5)]}


def qm9(i: Inputs) -> Inputs:
    """26 edges, or 13 bonds that stand in both directions."""
    n, e = i["nodes_max"], i["edges_max"]
    return {
        "mean_degree_if_26_undirected": mean_degree(n, e),
        "mean_degree_if_26_directed": mean_degree(n, e / 2),
    }


def list_of_edges(i: Inputs) -> Inputs:
    """An undirected friendship is stored twice, a link between pages once."""
    (club, friendships), (pages, links) = i["karate"], i["wikipedia"]
    return {
        "karate_n2": club**2,
        "karate_density": density(club, 2 * friendships),
        "wikipedia_n2": pages**2,
        "wikipedia_density_directed": density(pages, links),
    }


def image(i: Inputs) -> Inputs:
    h, w = i["height"], i["width"]
    graph = convert_image(torch.zeros(3, h, w))
    a = adjacency(graph)
    degree = a.sum(dim=1).view(h, w)
    return {
        "nodes": len(graph),
        "neighbours_of_non_border_pixel": int(degree[h // 2, w // 2]),
        "corner_degree": int(degree[0, 0]),
        "border_degree": int(degree[0, w // 2]),
        "undirected_edges": len(graph.pairs),
        "adjacency_ones": int(a.sum()),
    }


def text(i: Inputs) -> Inputs:
    """The book's one diagonal is the directed path; to both neighbours there are two."""
    words = [f"word {k}" for k in range(i["words"])]
    both, onward = (convert_text(words, directed)[0] for directed in (False, True))
    return {
        "nonzero_offsets_undirected": offsets(adjacency(both)),
        "nonzero_offsets_directed": offsets(adjacency(onward)),
        "edges": len(both.pairs),
    }


def adjacency(graph: AttributedGraph) -> Tensor:
    """A as the book has it, from row to column."""
    return read_graph(graph.batch()).links.adjacency().T


def offsets(a: Tensor) -> list[int]:
    """Diagonals with anything on them."""
    row, column = a.nonzero(as_tuple=True)
    found: list[int] = (column - row).unique().tolist()
    return found


def sampled(i: Inputs) -> Inputs:
    """And the formula against all 20 samples of 3 from 1..6."""
    first, last = map(int, i["neighbour_values"].split(".."))
    values = torch.arange(first, last + 1, dtype=torch.float64)
    few, some, all_ = i["sample_sizes"]
    small = torch.arange(1, 7, dtype=torch.float64)
    means = torch.tensor([sum(sample) / 3 for sample in combinations(small.tolist(), 3)], dtype=torch.float64)
    unbiased = torch.isclose(means.mean(), small.mean())
    right = torch.isclose(means.var(correction=0), variance_of_mean(small, 3))
    found = {
        "variance_of_mean": variance_of_mean(values, few),
        f"variance_m{some}": variance_of_mean(values, some),
        "variance_full": variance_of_mean(values, all_),
        "unbiased_checked_by_enumeration": bool(unbiased & right),
    }
    return found | {f"work_reduction_{m}": i["wikipedia_max_neighbours"] / m for m in i["text_samples"]}


EXAMPLES: dict[str, Compute] = {
    "DLN-GraphSizes-karate": karate,
    "DLN-GraphSizes-cora": cora,
    "DLN-GraphSizes-wikipedia": wikipedia,
    "DLN-GraphSizes-qm9": qm9,
    "DLN-Sparsity-adjacency-list": list_of_edges,
    "DLN-ImagesAsGraphs-5x5": image,
    "DLN-TextAsGraphs-diagonal": text,
    "DLN-GraphSAGE-sampling": sampled,
}

SET_ASIDE: dict[str, str] = {}
