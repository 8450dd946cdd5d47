"""The Weisfeiler-Lehman test: colours of nodes, refined by the colours around them, until two graphs differ or no more.

    c_v ← name of (c_v, multiset { c_u : u ∈ N(v) })        all colours equal at first, or given by attributes
    two graphs whose multisets of colours differ are not isomorphic: "different"
    otherwise nothing is said: "undecided", never "the same"          (6-cycle against two triangles)

    isomorphic: a bijection f with (u, v) ∈ G₁ ⇔ (f(u), f(v)) ∈ G₂

All graphs of a batch are refined together, so that a colour means the same in each. Names are exact, no hashes: a
multiset is written as a sorted sequence, and sequences are named by halving them, two neighbouring names at a time.
No more rounds than nodes are needed; it ends as soon as a round makes no new colour.

Systems: weisfeiler-lehman
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from descend.ops.graph.structure import Links, group

Answer = Literal["different", "undecided"]


def refine(links: Links, colours: Tensor) -> Tensor:
    """One round: colours (n) in 0..k-1 -> (n)."""
    order = torch.sort(colours[links.source], stable=True).indices
    around = name_sequences(colours[links.source][order], links.target[order], links.n)
    return torch.unique(colours * (links.n + 1) + around, return_inverse=True)[1]


def name_sequences(items: Tensor, owner: Tensor, n: int) -> Tensor:
    """A number for the sequence of the items (m) of each owner, in their order: equal for equal sequences (n).

    a b c d e -> (ab)(cd)(e·) -> ((ab)(cd))((e·)·) -> one name; · is no item. Equal sequences stay equal, others differ.
    """
    rows = group(owner, n)
    items, owner = items[rows.order], owner[rows.order]
    counts, starts = rows.counts, rows.starts[:-1]
    while bool((counts > 1).any()):
        place = torch.arange(len(items), device=items.device) - starts[owner]
        left, last = place % 2 == 0, place + 1 == counts[owner]
        right = torch.where(last, 0, items.roll(-1) + 1)[left]
        items = torch.unique(items[left] * (items.max() + 2) + right, return_inverse=True)[1]
        owner, counts = owner[left], (counts + 1) // 2
        starts = counts.cumsum(0) - counts
    return torch.zeros(n, dtype=torch.long, device=items.device).index_add(0, owner, items + 1)


def colour_nodes(links: Links, rounds: int | None = None, colours: Tensor | None = None) -> Tensor:
    """Colours (n) in 0..k-1 after so many rounds, or when they are stable; `colours` are those of the start."""
    first = torch.zeros_like(links.owner) if colours is None else torch.unique(colours, return_inverse=True)[1]
    found, known = first, len(first.unique())
    for _ in range(links.n if rounds is None else rounds):
        found = refine(links, found)
        before, known = known, len(found.unique())
        if known == before:
            break
    return found


def classify_graphs(links: Links, rounds: int | None = None, colours: Tensor | None = None) -> Tensor:
    """A number for each graph of a batch (g): those with different numbers are not isomorphic."""
    found = colour_nodes(links, rounds, colours)
    order = torch.sort(found, stable=True).indices
    names = name_sequences(found[order], links.owner[order], links.graphs)
    return torch.unique(names, return_inverse=True)[1]


def compare(
    one: Links, other: Links, rounds: int | None = None, colours: tuple[Tensor, Tensor] | None = None
) -> Answer:
    """The test of two graphs; `colours` are numbers for what their nodes are."""
    both = Links(
        torch.cat([one.source, other.source + one.n]),
        torch.cat([one.target, other.target + one.n]),
        torch.cat([torch.zeros_like(one.owner), torch.ones_like(other.owner)]),
        2,
    )
    first, second = classify_graphs(both, rounds, None if colours is None else torch.cat(colours)).tolist()
    return "undecided" if first == second else "different"


def is_isomorphism(one: Links, other: Links, to: Tensor) -> bool:
    """Whether node v of one graph may be taken for node to_v of the other (n): a bijection that keeps every edge."""
    if (one.n, one.e) != (other.n, other.e) or not torch.equal(to.sort().values, torch.arange(one.n, device=to.device)):
        return False
    moved = to[one.source] * one.n + to[one.target]
    return torch.equal(moved.sort().values, (other.source * one.n + other.target).sort().values)
