"""Graphs that need no file: the karate club, the imports of Python's library, and generated ones with known answers."""

from __future__ import annotations

from functools import lru_cache

import torch

from descend.data.graphs.attributed import AttributedGraph, Graphs, gather, link
from descend.data.graphs.karate import load_karate
from descend.data.graphs.node_graph import NodeGraph
from descend.data.toys.molecules import ELEMENTS, ToyMolecule, count_rings, grow_molecules, measure_property
from descend.data.toys.partition import plant_partition
from descend.errors import Mistake

RINGS = ("fewer than two rings", "two rings or more")
PROPERTY = "property"


def load_graph(name: str, size: int) -> NodeGraph:
    """A graph whose nodes have classes; `size` is that of a generated one."""
    if name == "karate":
        return load_karate()
    if name == "imports":
        from descend.data.graphs.imports import load_imports  # here, since it reads the whole library

        return load_imports()
    return load_planted(size)


@lru_cache(maxsize=2)
def load_planted(size: int) -> NodeGraph:
    """Four classes, links mostly within a class, features with much noise."""
    if size < 40:
        raise Mistake(f"--data.size {size}: give at least 40 nodes, ten of each class")
    x, pairs, y = plant_partition(size)
    names = tuple(f"node {i}" for i in range(size))
    return NodeGraph(link(x, pairs), y, tuple(f"group {k}" for k in range(int(y.max()) + 1)), names)


@lru_cache(maxsize=2)
def load_graphs(name: str, size: int) -> Graphs:
    """Molecule-like graphs: "rings" with a class, "molecules" with a number."""
    molecules = grow_molecules(size)
    graphs = [as_graph(molecule) for molecule in molecules]
    if name == "rings":
        rings = [count_rings(len(m.elements), m.bonds) for m in molecules]
        return gather(graphs, torch.tensor([int(r >= 2) for r in rings]), [f"molecule {i}" for i in range(size)])
    y = torch.tensor([[measure_property(m)] for m in molecules], dtype=torch.float32)
    return gather(graphs, y, [f"molecule {i}" for i in range(size)])


def as_graph(molecule: ToyMolecule) -> AttributedGraph:
    """One-hot elements and one-hot orders of the bonds."""
    nodes = torch.eye(len(ELEMENTS))[molecule.elements]
    return link(nodes, molecule.bonds, edge_attributes=torch.eye(2)[molecule.orders - 1])
