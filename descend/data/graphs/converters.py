"""Graphs of things that are no graphs yet: an image, a text, a molecule, people who meet.

    image      a pixel is a node with its channels; edges to all that touch it, at most 8
    text       a word is a node; an edge to the next one, or both ways: one diagonal of the matrix, or two
    molecule   an atom is a node, a bond an edge with its order; no atom has more bonds than its valence
    people     a name is a node; an edge between two who are named together, with how often

Systems: data-to-graph-converters
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations

import torch
from torch import Tensor

from descend.data.graphs.attributed import AttributedGraph, link
from descend.errors import Mistake

VALENCES = {"H": 1, "B": 3, "C": 4, "N": 3, "O": 2, "F": 1, "Si": 4, "P": 5, "S": 6, "Cl": 1, "Br": 1, "I": 1}
DIRECTIONS = ((0, 1), (1, -1), (1, 0), (1, 1))  # the other four are the same edges


def convert_image(image: Tensor) -> AttributedGraph:
    """Pixels (c, h, w) -> h w nodes with c attributes, row by row."""
    if image.dim() != 3:
        raise Mistake(f"an image has three axes (channels, height, width), this one has {image.dim()}")
    _, h, w = image.shape
    number = torch.arange(h * w).view(h, w)
    pairs = [
        torch.stack(
            [number[: h - down, max(0, -right) : w - max(0, right)], number[down:, max(0, right) : w + min(0, right)]]
        )
        for down, right in DIRECTIONS
    ]
    return link(image.flatten(1).T.contiguous().float(), torch.cat([pair.flatten(1).T for pair in pairs]))


def convert_text(words: Sequence[str], directed: bool = False) -> tuple[AttributedGraph, tuple[str, ...]]:
    """A path of the words, each with its number among the different ones; and these."""
    known = {word: k for k, word in enumerate(dict.fromkeys(words))}
    nodes = torch.tensor([[known[word]] for word in words], dtype=torch.float32).view(-1, 1)
    step = torch.arange(max(0, len(words) - 1))
    return link(nodes, torch.stack([step, step + 1], 1), directed), tuple(known)


def convert_molecule(atoms: Sequence[str], bonds: Sequence[tuple[int, int, int]]) -> AttributedGraph:
    """Elements, and bonds (atom, atom, order) -> one-hot elements, and the order of each bond."""
    elements = tuple(VALENCES)
    for i, atom in enumerate(atoms):
        if atom not in VALENCES:
            raise Mistake(f"atom {i} is {atom!r}; the elements are {', '.join(elements)}")
    used = [0] * len(atoms)
    for k, (i, j, order) in enumerate(bonds):
        if not (0 <= i < len(atoms) and 0 <= j < len(atoms)) or i == j or order not in (1, 2, 3):
            raise Mistake(f"bond {k} is ({i}, {j}, {order}); it links two of the {len(atoms)} atoms, 1 to 3 times")
        used[i] += order
        used[j] += order
    for i, (atom, count) in enumerate(zip(atoms, used, strict=True)):
        if count > VALENCES[atom]:
            raise Mistake(f"atom {i}, {atom}, has {count} bonds, at most {VALENCES[atom]} are possible; correct them")
    nodes = torch.eye(len(elements))[[elements.index(atom) for atom in atoms]]
    pairs = torch.tensor([bond[:2] for bond in bonds], dtype=torch.long).view(-1, 2)
    orders = torch.tensor([bond[2] for bond in bonds], dtype=torch.float32)[:, None]
    return link(nodes, pairs, edge_attributes=orders)


def convert_pairs(pairs: Iterable[tuple[str, str]]) -> tuple[AttributedGraph, tuple[str, ...]]:
    """Two names that have to do with each other -> people without attributes, edges with how often; and the names."""
    return convert_scenes(pairs)


def convert_scenes(casts: Iterable[Sequence[str]]) -> tuple[AttributedGraph, tuple[str, ...]]:
    """Who is in each scene -> an edge between any two who meet, with the number of their scenes; and the names."""
    scenes = [list(dict.fromkeys(cast)) for cast in casts]
    names = tuple(dict.fromkeys(name for cast in scenes for name in cast))
    number = {name: i for i, name in enumerate(names)}
    met = Counter(tuple(sorted(pair)) for cast in scenes for pair in combinations([number[name] for name in cast], 2))
    pairs = torch.tensor(list(met), dtype=torch.long).view(-1, 2)
    often = torch.tensor(list(met.values()), dtype=torch.float32)[:, None]
    return link(torch.zeros(len(names), 0), pairs, edge_attributes=often), names
