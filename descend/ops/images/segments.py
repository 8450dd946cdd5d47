"""Graph-based segmentation: pixels are nodes, and neighbours are joined while they differ less than their segments do.

    cost of an edge       ‖I(p) − I(q)‖, of the four neighbours to the right, below and on both diagonals
    Int(C)                the heaviest edge that joined C
    edges, light to heavy: join the segments of p and q if cost < min(Int(C_p) + k / |C_p|, Int(C_q) + k / |C_q|)
    then segments of fewer than `least` pixels join their nearest neighbour, again light to heavy

(Felzenszwalb and Huttenlocher 2004; the books name Selective Search, which starts from it.) A larger k makes larger
segments. Images are smoothed by a Gaussian first. The edges come one after the other, which no vectorized form can
avoid: compiled code does it (`native/segments.cpp`), or a plain loop.

Systems: selective-search
"""

from __future__ import annotations

import torch
from scipy.ndimage import gaussian_filter
from torch import Tensor

from descend.errors import Mistake
from descend.native.segments import join_by_edges


def segment_image(x: Tensor, scale: float = 100.0, sigma: float = 0.8, least: int = 20) -> Tensor:
    """The number of each pixel's segment (h, w), counted from 0, of an image (c, h, w) with values in 0..1. `scale` is
    k for values of 0..255."""
    if x.ndim != 3 or not x.is_floating_point():
        raise Mistake(f"segments are of one image (channels, height, width) with values in 0..1, not {tuple(x.shape)}")
    smooth = torch.from_numpy(gaussian_filter(x.detach().double().cpu().numpy(), (0, sigma, sigma)))
    edges, costs = make_edges(smooth)
    order = costs.argsort(stable=True)
    edges, costs, nodes = edges[order], costs[order], x.shape[1] * x.shape[2]
    roots = join_by_edges(nodes, edges, costs, scale / 255, least)
    if roots is None:
        roots = join_by_loop(nodes, edges, costs, scale / 255, least)
    return roots.unique(return_inverse=True)[1].view(x.shape[1:])


def make_edges(x: Tensor) -> tuple[Tensor, Tensor]:
    """Pairs of neighbouring pixels (m, 2), and how much they differ (m), of an image (c, h, w)."""
    number = torch.arange(x.shape[1] * x.shape[2]).view(x.shape[1:])
    pairs = [
        (number[:, 1:], number[:, :-1], x[:, :, 1:] - x[:, :, :-1]),
        (number[1:], number[:-1], x[:, 1:] - x[:, :-1]),
        (number[1:, 1:], number[:-1, :-1], x[:, 1:, 1:] - x[:, :-1, :-1]),
        (number[:-1, 1:], number[1:, :-1], x[:, :-1, 1:] - x[:, 1:, :-1]),
    ]
    edges = torch.cat([torch.stack([a.flatten(), b.flatten()], dim=1) for a, b, _ in pairs])
    return edges, torch.cat([d.square().sum(dim=0).sqrt().flatten() for _, _, d in pairs])


def join_by_loop(nodes: int, edges: Tensor, costs: Tensor, scale: float, least: int) -> Tensor:
    """The root of each node (n), edge by edge."""
    parent, size, inside = list(range(nodes)), [1] * nodes, [0.0] * nodes

    def find_root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    pairs = edges.tolist()
    for (a, b), cost in zip(pairs, costs.tolist(), strict=True):
        a, b = find_root(a), find_root(b)
        if a != b and cost < min(inside[a] + scale / size[a], inside[b] + scale / size[b]):
            a, b = min(a, b), max(a, b)
            parent[b], size[a], inside[a] = a, size[a] + size[b], cost
    for a, b in pairs:
        a, b = find_root(a), find_root(b)
        if a != b and min(size[a], size[b]) < least:
            a, b = min(a, b), max(a, b)
            parent[b], size[a] = a, size[a] + size[b]
    return torch.tensor([find_root(i) for i in range(nodes)])
