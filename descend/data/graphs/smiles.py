"""Molecules of SMILES texts: atoms are nodes, bonds are edges. Reading them needs rdkit (the extra `molecules`).

    atom    one-hot element of `ELEMENTS` or another, charge, hydrogens, whether aromatic
    bond    one-hot order: single, double, triple, aromatic

Systems: data-to-graph-converters
"""

from __future__ import annotations

from typing import Any

import torch

from descend.data.graphs.attributed import AttributedGraph, link
from descend.errors import Mistake

ELEMENTS = ("H", "B", "C", "N", "O", "F", "Si", "P", "S", "Cl", "Br", "I")
NUMBERS = {symbol: k for k, symbol in enumerate(ELEMENTS)}
ORDERS = ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC")
WIDTH = len(ELEMENTS) + 4


def read_smiles(text: str, where: str = "", hydrogens: bool = False) -> AttributedGraph:
    """The molecule of a SMILES text, or a mistake that names it; with `hydrogens` they are nodes too."""
    chemistry, log = load_chemistry()
    with log.BlockLogs():
        molecule = chemistry.MolFromSmiles(text)
    if molecule is None or not molecule.GetNumAtoms():
        prefix = f"{where}: " if where else ""
        raise Mistake(f"{prefix}{text!r} is no SMILES of a possible molecule (brackets, rings or valences are wrong)")
    return convert_molecule(chemistry.AddHs(molecule) if hydrogens else molecule)


def convert_molecule(molecule: Any) -> AttributedGraph:
    """Of an rdkit molecule."""
    rows = []
    for atom in molecule.GetAtoms():
        row = [0.0] * WIDTH
        row[NUMBERS.get(atom.GetSymbol(), len(ELEMENTS))] = 1.0
        row[-3:] = [atom.GetFormalCharge(), atom.GetTotalNumHs(), float(atom.GetIsAromatic())]
        rows.append(row)
    bonds = list(molecule.GetBonds())
    pairs = torch.tensor([(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in bonds], dtype=torch.long).view(-1, 2)
    orders = [[float(str(bond.GetBondType()) == order) for order in ORDERS] for bond in bonds]
    return link(torch.tensor(rows), pairs, edge_attributes=torch.tensor(orders).view(-1, len(ORDERS)))


def load_chemistry() -> tuple[Any, Any]:
    """rdkit, or a mistake that says how to get it."""
    try:
        from rdkit import Chem, rdBase
    except ImportError:
        raise Mistake("SMILES need rdkit: pip install 'descend[molecules]'") from None
    return Chem, rdBase
