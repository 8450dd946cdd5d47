"""The planted partition: nodes of k classes, links mostly within a class, and features that say little by themselves.

    m ≈ n · degree / 2 links: an end at random, the other in the same class with chance `same`, else anywhere
    x_v = μ_{class of v} + noise · ε        μ_c ~ N(0, I)

A generated graph of any size, in time and memory that grow with its links.

Systems: graph-task-labs
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from descend.seeds import generator

FEATURES = 16


class PlantedGraph(NamedTuple):
    """Features (n, `FEATURES`), pairs (m, 2) with the smaller number first, each once, and classes (n)."""

    x: Tensor
    pairs: Tensor
    y: Tensor


def plant_partition(
    n: int, classes: int = 4, degree: float = 8.0, same: float = 0.8, noise: float = 3.0, seed: int = 0
) -> PlantedGraph:
    """n nodes; node i has class i mod k."""
    random = generator(seed, n, classes)
    y = torch.arange(n) % classes
    m = round(n * degree / 2)
    one = torch.randint(n, (m,), generator=random)
    anywhere = torch.randint(n, (m,), generator=random)
    members = (n - 1 - y) // classes + 1  # of the class of each node
    within = (torch.rand(m, generator=random, dtype=torch.float64) * members[one]).long() * classes + y[one]
    other = torch.where(torch.rand(m, generator=random) < same, within, anywhere)
    low, high = torch.minimum(one, other), torch.maximum(one, other)
    keys = (low * n + high)[low != high].unique()
    centres = torch.randn(classes, FEATURES, generator=random)
    x = centres[y] + noise * torch.randn(n, FEATURES, generator=random)
    return PlantedGraph(x, torch.stack([keys // n, keys % n], 1), y)
