"""Graph-based segmentation by compiled code (segments.cpp). `ops/images/segments.py` says what it computes."""

from __future__ import annotations

from ctypes import c_double, c_int64, c_void_p

import torch
from torch import Tensor

from descend.native.build import library


def join_by_edges(nodes: int, edges: Tensor, costs: Tensor, scale: float, least: int) -> Tensor | None:
    """The root of each node (n), from edges (m, 2) that are sorted by their costs (m); None without a compiler."""
    compiled = library() if nodes < 2**31 else None
    if compiled is None:
        return None
    edges, costs = edges.long().contiguous(), costs.double().contiguous()
    roots = torch.empty(nodes, dtype=torch.long)
    compiled.segment_graph(
        c_int64(nodes),
        c_int64(len(edges)),
        c_void_p(edges.data_ptr()),
        c_void_p(costs.data_ptr()),
        c_double(scale),
        c_int64(least),
        c_void_p(roots.data_ptr()),
    )
    return roots
