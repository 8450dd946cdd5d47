"""Molecule-like graphs whose rings and whose property are known exactly.

    atoms C, N, O with 4, 3, 2 bonds at most; single and double bonds; one fragment, or two (15%)
    rings       R = E − V + components, 0 to 3 with equal chances, whatever the size
    property    Σ_atoms a(element) + Σ_bonds b(order) − 1.5 R, without noise
    two rings   R ≥ 2

The size (6 to 18 atoms) does not depend on R, so that neither atoms nor bonds alone tell the rings.

Systems: graph-task-labs
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from torch import Tensor

ELEMENTS = ("C", "N", "O")
VALENCES = (4, 3, 2)
SHARES = (0.7, 0.15, 0.15)
SMALLEST, LARGEST = 6, 18
RANKS = 4  # 0..3 rings
TWO_FRAGMENTS, DOUBLE = 0.15, 0.2
CROWDED = 3  # bonds that the skeleton gives an atom at most
NEAREST = 3  # bonds between the ends of a new ring bond: rings have 4 atoms at least
ATOM_TERMS, BOND_TERMS, RING_TERM = (1.0, 0.4, -0.7), (0.3, 0.9), -1.5


class ToyMolecule(NamedTuple):
    """Numbers of `ELEMENTS` (n), bonds (m, 2), and their orders (m)."""

    elements: Tensor
    bonds: Tensor
    orders: Tensor


def count_rings(n: int, pairs: Tensor) -> int:
    """R = E − V + components, of pairs (m, 2) that stand once each."""
    return len(pairs) - n + count_components(n, pairs)


def count_components(n: int, pairs: Tensor) -> int:
    """The parts of a graph that no edge links."""
    source, target = pairs.T.numpy()
    return int(connected_components(coo_matrix((np.ones(len(pairs)), (source, target)), (n, n)), directed=False)[0])


def measure_property(molecule: ToyMolecule) -> float:
    """Σ_atoms a(element) + Σ_bonds b(order) − 1.5 R"""
    atoms = torch.tensor(ATOM_TERMS, dtype=torch.float64)[molecule.elements].sum()
    bonds = torch.tensor(BOND_TERMS, dtype=torch.float64)[molecule.orders - 1].sum()
    return float(atoms + bonds) + RING_TERM * count_rings(len(molecule.elements), molecule.bonds)


def grow_molecules(n: int, seed: int = 0) -> list[ToyMolecule]:
    """n molecules; molecule i belongs to (seed, i)."""
    return [grow_molecule(np.random.default_rng([seed, i])) for i in range(n)]


def grow_molecule(random: np.random.Generator) -> ToyMolecule:
    """A tree of atoms, bonds that close rings, elements with enough bonds, and double bonds where some are left."""
    n = int(random.integers(SMALLEST, LARGEST + 1))
    second = int(random.integers(2, n - 1)) if random.random() < TWO_FRAGMENTS else n  # where a second part begins
    near: list[set[int]] = [set() for _ in range(n)]
    for i in range(1, n):
        first = second if i > second else 0
        if i != second:
            add_bond(near, i, int(random.choice([j for j in range(first, i) if len(near[j]) < CROWDED])))
    for _ in range(int(random.integers(RANKS))):
        ends = [(i, j) for i in range(n) if len(near[i]) < CROWDED for j in find_far(near, i) if j > i]
        if ends:
            add_bond(near, *ends[int(random.integers(len(ends)))])
    elements = [choose_element(random, len(around)) for around in near]
    bonds = [(i, j) for i in range(n) for j in sorted(near[i]) if i < j]
    left = [VALENCES[element] - len(around) for element, around in zip(elements, near, strict=True)]
    orders = []
    for i, j in bonds:
        double = left[i] > 0 and left[j] > 0 and random.random() < DOUBLE
        left[i], left[j] = left[i] - double, left[j] - double
        orders.append(1 + int(double))
    return ToyMolecule(torch.tensor(elements), torch.tensor(bonds).view(-1, 2), torch.tensor(orders, dtype=torch.long))


def add_bond(near: list[set[int]], i: int, j: int) -> None:
    near[i].add(j)
    near[j].add(i)


def find_far(near: list[set[int]], start: int) -> list[int]:
    """Atoms of the same fragment with a bond to spare, at least `NEAREST` bonds away."""
    seen, ring, away = {start}, [start], 0
    found = []
    while ring:
        if away >= NEAREST:
            found += [j for j in ring if len(near[j]) < CROWDED]
        ring = sorted({k for j in ring for k in near[j]} - seen)
        seen.update(ring)
        away += 1
    return found


def choose_element(random: np.random.Generator, bonds: int) -> int:
    """An element that has at least so many bonds."""
    shares = np.array([share if valence >= bonds else 0 for share, valence in zip(SHARES, VALENCES, strict=True)])
    return int(random.choice(len(ELEMENTS), p=shares / shares.sum()))
