"""Molecule-like graphs: valences hold, rings are counted right, the property is its formula, and sizes tell nothing."""

from __future__ import annotations

import networkx as nx
import pytest
import torch

from descend.data.toys.molecules import (
    ATOM_TERMS,
    BOND_TERMS,
    LARGEST,
    RING_TERM,
    SMALLEST,
    VALENCES,
    count_components,
    count_rings,
    grow_molecules,
    measure_property,
)

MOLECULES = grow_molecules(300)


def test_rings_are_the_cycle_basis() -> None:
    found = []
    for elements, bonds, _ in MOLECULES:
        theirs = nx.Graph(map(tuple, bonds.tolist()))
        theirs.add_nodes_from(range(len(elements)))
        found.append(count_rings(len(elements), bonds))
        assert found[-1] == len(nx.cycle_basis(theirs))
        assert count_components(len(elements), bonds) == nx.number_connected_components(theirs) in (1, 2)
    assert torch.tensor(found).bincount().min() > 50
    assert len(torch.tensor(found).bincount()) == 4


def test_no_atom_has_more_bonds_than_its_valence() -> None:
    for elements, bonds, orders in MOLECULES:
        used = torch.zeros(len(elements), dtype=torch.long)
        for end in (0, 1):
            used.index_add_(0, bonds[:, end], orders)
        assert (used <= torch.tensor(VALENCES)[elements]).all()
        assert SMALLEST <= len(elements) <= LARGEST
        assert len({tuple(bond) for bond in bonds.tolist()}) == len(bonds)


def test_the_property_is_a_sum_without_noise() -> None:
    for molecule in MOLECULES[:50]:
        atoms = sum(ATOM_TERMS[k] for k in molecule.elements.tolist())
        bonds = sum(BOND_TERMS[k - 1] for k in molecule.orders.tolist())
        rings = count_rings(len(molecule.elements), molecule.bonds)
        assert measure_property(molecule) == pytest.approx(atoms + bonds + RING_TERM * rings)


def test_a_molecule_belongs_to_its_seed_and_number() -> None:
    again = grow_molecules(20)
    assert all(
        torch.equal(a, b) for one, two in zip(again, MOLECULES, strict=False) for a, b in zip(one, two, strict=True)
    )
    assert any(len(a.elements) != len(b.elements) for a, b in zip(again, grow_molecules(20, seed=1), strict=True))


def test_the_size_does_not_tell_the_rings() -> None:
    sizes = torch.tensor([len(m.elements) for m in MOLECULES]).double()
    rings = torch.tensor([count_rings(len(m.elements), m.bonds) for m in MOLECULES]).double()
    assert abs(float(torch.corrcoef(torch.stack([sizes, rings]))[0, 1])) < 0.15
