"""Worked examples of Laplacians, polynomial filters, the Weisfeiler-Lehman test and over-smoothing."""

from __future__ import annotations

import math

import networkx as nx
import torch
from torch import Tensor

from descend.catalog.examples import Compute, Inputs, real
from descend.data.graphs.karate import load_karate
from descend.ops.graph.aggregate import max_groups, mean_groups, sum_groups
from descend.ops.graph.laplacian import Operator, laplacian, largest_eigenvalues, scale
from descend.ops.graph.paths import choose_nearest, distances
from descend.ops.graph.polynomial import chebyshev, filter_nodes, powers
from descend.ops.graph.smoothing import distance_to_limit, smooth, smoothing_rate
from descend.ops.graph.structure import Links, build_graph
from descend.ops.graph.weisfeiler_lehman import compare

F64 = torch.float64


def link(graph: nx.Graph) -> Links:
    """A graph of networkx, nodes in its order."""
    a = torch.tensor(nx.to_numpy_array(graph)).nonzero()
    return build_graph(torch.zeros(len(graph), 0), a).links


def path() -> Operator:
    return laplacian(link(nx.path_graph(8)), F64)


def grid() -> Operator:
    """5 × 5 pixels with 8 neighbours, row by row."""
    squares = nx.strong_product(nx.path_graph(5), nx.path_graph(5))
    return laplacian(link(nx.convert_node_labels_to_integers(squares, ordering="sorted")), F64)


def rescaled() -> Operator:
    matrix = grid()
    return scale(matrix, largest_eigenvalues(matrix))


def filtered(i: Inputs) -> Tensor:
    """What the filter makes of an impulse at the centre (5, 5)."""
    impulse = torch.zeros(25, 1, dtype=F64)
    impulse[12] = 1
    return filter_nodes(powers(grid(), impulse, 2), real(i["w"])).view(5, 5)


def zero_rows(i: Inputs) -> Inputs:
    matrix = path()
    values = torch.linalg.eigvalsh(matrix.dense())
    return {
        "row_sum_max": matrix.dense().sum(1).abs().max(),
        "min_eigenvalue_is_zero": bool(values[0].abs() < 1e-12),
        "max_eigenvalue": largest_eigenvalues(matrix)[0],
        "closed_form_max": 2 - 2 * math.cos(math.pi * 7 / 8),
    }


def own_value(i: Inputs) -> Inputs:
    matrix, x, v = path(), real(i["x"]), i["v_0based"]
    degree = matrix.links.degree[v].double()
    around = x[matrix.links.source[matrix.links.target == v]].sum()
    return {
        "(Lx)_v": (matrix @ x[:, None])[v, 0],
        "D_v x_v - sum": degree * x[v] - around,
        "with_x_u_of_left_neighbour": degree * x[v - 1] - around,
    }


def locality(i: Inputs) -> Inputs:
    _, _, second, third = powers(path(), torch.eye(8, dtype=F64), 3)
    return {
        "L2_at_distance_2": second[0, 2],
        "L2_at_distance_3": second[0, 3],
        "L3_at_distance_3": third[0, 3],
        "L3_at_distance_4": third[0, 4],
    }


def identity(i: Inputs) -> Inputs:
    y = filtered(i)
    y[2, 2] -= 1
    return {"max_abs_difference": y.abs().max()}


def nothing(i: Inputs) -> Inputs:
    return {"max_abs": filtered(i).abs().max()}


def one_hop(i: Inputs) -> Inputs:
    y = filtered(i)
    return {"centre": y[2, 2], "neighbour": y[2, 1], "two_hops": y[2, 0]}


def two_hops(i: Inputs) -> Inputs:
    return {"grid": filtered(i)}


def spectrum(i: Inputs) -> Inputs:
    values = torch.linalg.eigvalsh(rescaled().dense())
    return {"lambda_max": largest_eigenvalues(grid())[0], "min": values[0], "max": values[-1]}


def growth(i: Inputs) -> Inputs:
    matrix, most, each = rescaled(), max(i["degrees"]), torch.eye(25, dtype=F64)
    plain, terms = powers(grid(), each, most), chebyshev(matrix, each, most)
    values, vectors = torch.linalg.eigh(matrix.dense())
    wanted = [vectors @ torch.diag((k * values.clamp(-1, 1).arccos()).cos()) @ vectors.T for k in range(most + 1)]
    return {
        "max_entry_L_i": [plain[k].abs().max() for k in i["degrees"]],
        "max_entry_T_i": [terms[k].abs().max() for k in i["degrees"]],
        "T_i_eigenvalues_equal_cos_i_arccos": all(map(torch.allclose, terms, wanted)),
    }


def equivariance(i: Inputs) -> Inputs:
    here, w = grid(), real(i["w"])
    to = torch.randperm(25, generator=torch.Generator().manual_seed(i["seed"]))
    moved = Links(to[here.links.source], to[here.links.target], here.links.owner, 1)
    p = torch.eye(25, dtype=F64)[to]  # node v becomes to_v
    off = p.T @ filter_nodes(powers(here, torch.eye(25, dtype=F64), 2), w) @ p
    off = off - filter_nodes(powers(laplacian(moved, F64), torch.eye(25, dtype=F64), 2), w)
    return {"max_abs_difference_below_1e-12": bool(off.abs().max() < 1e-12)}


def multisets(i: Inputs) -> Inputs:
    sets = [real(i[name]) for name in ("S1", "S2", "S3")]
    x, owner = torch.cat(sets), torch.repeat_interleave(torch.tensor([len(s) for s in sets]))
    return {"sum": sum_groups(x, owner, 3), "mean": mean_groups(x, owner, 3), "max": max_groups(x, owner, 3)}


def two_pairs(i: Inputs) -> Inputs:
    ring, triangles = nx.cycle_graph(6), nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))
    return {
        "pair_1_separated": compare(link(nx.path_graph(6)), link(nx.star_graph(5)), rounds=5) == "different",
        "pair_2_separated": compare(link(ring), link(triangles), rounds=5) == "different",
        "pair_2_isomorphic": nx.is_isomorphic(ring, triangles),
    }


def oversmoothing(i: Inputs) -> Inputs:
    links, h = build_graph(torch.zeros(3, 0), real(i["A"]).nonzero()).links, real(i["H"])
    return {
        "residual": [distance_to_limit(smooth(h, links, k), links) for k in i["layers"]],
        "rate": smoothing_rate(links),
    }


def karate_distance(i: Inputs) -> Inputs:
    club = load_karate()
    leaders = torch.tensor([i["instructor_node"], i["administrator_node"]])
    links = build_graph(club.graph.nodes, club.graph.edges).links
    nearest, hops = choose_nearest(links, leaders), distances(links, leaders)
    answered, right = nearest >= 0, nearest == club.y
    return {
        "right": int(right.sum()),
        "wrong": int((answered & ~right).sum()),
        "ties": int((~answered).sum()),
        "accuracy_without_ties": float(right[answered].double().mean()),
        "correlation": torch.corrcoef(torch.stack([hops[:, 0] - hops[:, 1], club.y]).double())[0, 1],
    }


EXAMPLES: dict[str, Compute] = {
    "DLN-PolyFilter-laplacian": zero_rows,
    "DLN-PolyFilter-Lx": own_value,
    "DLN-PolyFilter-localization": locality,
    "DLN-PolyFilter-w-1-0-0": identity,
    "DLN-PolyFilter-w-0-0-0": nothing,
    "DLN-PolyFilter-w-0-0.1-0": one_hop,
    "DLN-PolyFilter-w-0-0-0.01": two_hops,
    "DLN-ChebNet-spectrum": spectrum,
    "DLN-ChebNet-growth": growth,
    "DLN-ChebNet-equivariance": equivariance,
    "DLN-GIN-multisets": multisets,
    "DLN-GIN-WL": two_pairs,
    "S940-10.4-oversmoothing": oversmoothing,
    "DLN-Tasks-karate-distance": karate_distance,
}

SET_ASIDE: dict[str, str] = {}
