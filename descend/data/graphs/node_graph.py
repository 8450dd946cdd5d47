"""One graph whose nodes have classes: as it was read, and cut into parts.

    y = −1      the class is not known
    parts       train, valid, test: numbers of nodes. Every part sees the whole graph; it knows the classes of its nodes

A batch is the whole graph, with the same tensors at every step; `y` is −1 for nodes of other parts.

Systems: graph-data-structure
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from descend.contracts import Batch
from descend.data.detection.annotated import Notes
from descend.data.graphs.attributed import AttributedGraph
from descend.data.images.labelled import check_shares, split_by_class
from descend.errors import Mistake

PARTS = ("train", "valid", "test")
OPEN = -1  # a node, or a link, that no part has


@dataclass(frozen=True, eq=False)
class NodeGraph:
    """A graph and the classes of its nodes, as a file says it."""

    graph: AttributedGraph
    y: Tensor
    """The class of each node (n); -1: not known."""
    labels: tuple[str, ...]
    names: tuple[str, ...]
    """What each node is called."""
    parts: dict[str, Tensor] = field(default_factory=dict)
    """Nodes of the parts that the file gives; nothing: they are cut."""
    columns: tuple[str, ...] = ()
    """What the node attributes are called; nothing where they have no names."""
    link_parts: Tensor | None = None
    """The part of each of the graph's `pairs`: 0 train, 1 valid, 2 test; None: they are cut."""
    notes: Notes = field(default_factory=Notes)
    """What is odd about the file."""

    def cut(self, valid: float, test: float, per_class: int) -> dict[str, Tensor]:
        """The file's parts, or shares of the labelled nodes of each class; at most `per_class` of each class teach."""
        labelled = (self.y >= 0).nonzero().flatten()
        if not len(labelled):
            raise Mistake('no node has a class to learn; give nodes.csv a column "label", or a graph with classes')
        if self.parts:
            return self.parts
        check_shares(valid, test)
        pieces = [labelled[rows] for rows in split_by_class(self.y[labelled], (test, valid))]
        found = dict(zip(("test", "valid", "train"), pieces, strict=True))
        if per_class:
            found["train"] = take_few(found["train"], self.y, per_class)
        for part, rows in found.items():
            if not len(rows):
                raise Mistake(f"no node is left for the {part} part: {len(labelled)} labelled nodes are too few")
        return found


def take_few(rows: Tensor, y: Tensor, most: int) -> Tensor:
    """At most so many rows of each class, in order of a cut that does not depend on the run's seed."""
    kept = []
    for label in y[rows].unique().tolist():
        of_class = rows[y[rows] == label]
        share = min(1.0, most / len(of_class))
        kept.append(of_class[split_by_class(torch.zeros(len(of_class), dtype=torch.long), (share,), seed=label)[0]])
    return torch.cat(kept).sort().values


@dataclass(frozen=True, eq=False)
class NodeSplits:
    """One graph, ready to learn from, and the nodes of the three parts."""

    graph: AttributedGraph
    y: Tensor
    """The class of every node, also of those in no part (n)."""
    train: Tensor
    valid: Tensor
    test: Tensor
    labels: tuple[str, ...]
    names: tuple[str, ...]
    facts: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def whole(self) -> Batch:
        """The graph as a batch, without classes; always the same tensors."""
        return self.graph.batch()

    def batch(self, part: str) -> Batch:
        """The whole graph with the classes of the nodes of one part."""
        return {**self.whole, "y": self.hide(self.rows(part)), "y_owner": self.whole["nodes_owner"]}

    def rows(self, part: str) -> Tensor:
        """The nodes of a part."""
        return {"train": self.train, "valid": self.valid, "test": self.test}[part]

    def hide(self, rows: Tensor) -> Tensor:
        """y, with -1 for all other nodes."""
        found = torch.full_like(self.y, -1)
        found[rows] = self.y[rows]
        return found


def gather_parts(part: Tensor, y: Tensor, place: Callable[[int], str]) -> dict[str, Tensor]:
    """Nodes of each part, of the number of its part (n) or `OPEN`; all three must be there, with classes."""
    if bool((part == OPEN).all()):
        return {}
    if len(lacking := ((part != OPEN) & (y < 0)).nonzero()):
        i = int(lacking[0])
        raise Mistake(f"{place(i)}: a node of the part {PARTS[int(part[i])]} has no class; give it one, or no part")
    found = {name: (part == k).nonzero().flatten() for k, name in enumerate(PARTS)}
    if empty := [name for name, rows in found.items() if not len(rows)]:
        raise Mistake(f"{place(0)}: there are parts, but no node of {empty[0]}; give some, or leave all parts out")
    return found


def number_classes(names: Sequence[str]) -> tuple[Tensor, tuple[str, ...]]:
    """Classes of texts, -1 for an empty one: by number where all are whole numbers, else by name."""
    labels = sorted({name for name in names if name})
    if all(name.removeprefix("-").isdecimal() for name in labels):
        labels.sort(key=int)
    number = {name: k for k, name in enumerate(labels)} | {"": -1}
    return torch.tensor([number[name] for name in names], dtype=torch.long), tuple(labels)
