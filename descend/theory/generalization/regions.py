"""A ReLU network is affine wherever the same units are on: its linear regions, counted by activation patterns.

    z_l = W_l a_{l−1} + b_l,  a_l = relu(z_l)          pattern: which z are positive
    inside a pattern           f(x) = A x + c,  A = W_L D_{L−1} … D_1 W_1,  D_l = diag(pattern of layer l)
    n lines of the plane       1 + n + n (n − 1)/2 regions in general position          one hidden layer, two inputs
    n points of a line         n + 1 pieces at most; layers that fold make up to Π of them

On a line the count is exact: between two kinks every z is affine in the position, so its zero is found, layer by layer.
In the plane every region of two or more lines that are not all parallel has a corner, so the patterns around all
corners are all regions. Slices of deeper networks are counted on a grid, which can only miss some.

Systems: relu-linear-regions
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

import torch
from torch import Tensor

Layers = Sequence[tuple[Tensor, Tensor]]
"""(weight (out, in), bias (out)) of each layer; ReLU after all but the last."""


def read_pattern(layers: Layers, x: Tensor) -> Tensor:
    """Which hidden units are on at points x (.., d): (.., units)."""
    signs = []
    for weight, bias in layers[:-1]:
        z = x @ weight.T + bias
        signs.append(z > 0)
        x = z.relu()
    return torch.cat(signs, -1)


def local_map(layers: Layers, x: Tensor) -> tuple[Tensor, Tensor]:
    """A (out, d) and c (out) with f = A x + c in the region of x (d)."""
    a, c = torch.eye(len(x), dtype=x.dtype), torch.zeros_like(x)
    for i, (weight, bias) in enumerate(layers):
        a, c = weight @ a, weight @ c + bias
        if i < len(layers) - 1:
            on = ((a @ x + c) > 0).to(x.dtype)
            a, c = on[:, None] * a, on * c
    return a, c


def find_kinks(layers: Layers, start: Tensor, end: Tensor) -> Tensor:
    """The positions t in (0, 1) where a hidden unit switches along start + t (end − start), ascending."""
    t = torch.tensor([0.0, 1.0], dtype=start.dtype)
    for depth in range(1, len(layers)):
        middle = (t[:-1] + t[1:]) / 2
        found = [t]
        for low, high, m in zip(t[:-1], t[1:], middle, strict=True):
            a, c = local_map(layers[:depth], start + m * (end - start))
            slope, offset = a @ (end - start), a @ start + c
            zero = -offset / slope
            found.append(zero[(slope != 0) & (zero > low) & (zero < high)])
        t = torch.cat(found).unique()
    return t[1:-1]


def count_on_line(layers: Layers, start: Tensor, end: Tensor) -> int:
    """Regions that the segment from start (d) to end (d) passes through: patterns between the kinks, one after another.

    Two pieces that happen to have one slope still count as two where their patterns differ.
    """
    t = torch.cat([torch.zeros(1), find_kinks(layers, start, end), torch.ones(1)])
    t = t[torch.cat([torch.ones(1, dtype=torch.bool), t.diff() > 1e-9])]
    middle = ((t[:-1] + t[1:]) / 2).to(start.dtype)
    patterns = read_pattern(layers, start + middle[:, None] * (end - start))
    return 1 + int((patterns[1:] != patterns[:-1]).any(-1).sum())


def lines_regions(n: int) -> int:
    """1 + n + n (n − 1)/2."""
    return 1 + n + n * (n - 1) // 2


def count_in_plane(weight: Tensor, bias: Tensor) -> int:
    """Regions of one hidden layer with two inputs, weight (n, 2) and bias (n): all patterns around all corners."""
    seen = set()
    for i, j in combinations(range(len(weight)), 2):
        pair = [i, j]
        if torch.linalg.det(weight[pair]).abs() < 1e-12:
            continue
        corner = torch.linalg.solve(weight[pair], -bias[pair])
        signs = (weight @ corner + bias > 0).tolist()
        for a, b in product((False, True), repeat=2):
            signs[i], signs[j] = a, b
            seen.add(tuple(signs))
    if not seen:
        raise ValueError("lines without a common point: their regions have no corners; count along a line instead")
    return len(seen)


def count_on_grid(layers: Layers, x: Tensor) -> int:
    """Different patterns among points x (m, d): a lower bound of the regions there."""
    return len(read_pattern(layers, x).unique(dim=0))
