"""Many graphs with a class or numbers each: as they were read, and cut into parts.

Equal graphs (the same nodes, edges and attributes, in the same order) go to the same part.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
import xxhash
from torch import Tensor

from descend.data.detection.annotated import Notes
from descend.data.graphs.attributed import Graphs
from descend.data.images.labelled import check_shares, split_by_class
from descend.data.streams.splits import describe_leaks, keep_together
from descend.errors import Mistake
from descend.seeds import generator


@dataclass(frozen=True, eq=False)
class GraphSet:
    """Graphs with y (g) classes, or (g, t) numbers."""

    graphs: Graphs
    labels: tuple[str, ...]
    """The classes; nothing where numbers are to be predicted."""
    targets: tuple[str, ...]
    """The names of the numbers; nothing where there are classes."""
    parts: dict[str, Tensor] = field(default_factory=dict)
    """Rows of the parts that the file gives; nothing: they are cut."""
    notes: Notes = field(default_factory=Notes)

    def cut(self, valid: float, test: float) -> dict[str, Tensor]:
        """The file's parts, or shares of each class."""
        if self.parts:
            return self.parts
        check_shares(valid, test)
        n = len(self.graphs)
        if self.labels:
            pieces = split_by_class(self.graphs.y, (test, valid))
        else:
            order = torch.randperm(n, generator=generator(0, n))
            cuts = [round(n * test), round(n * (test + valid))]
            pieces = [piece.sort().values for piece in order.tensor_split(cuts)]
        found = dict(zip(("test", "valid", "train"), keep_together(self.digests(), pieces), strict=True))
        for part, rows in found.items():
            if not len(rows):
                raise Mistake(f"no graph is left for the {part} part: {n} graphs are too few; give more")
        return found

    def digests(self) -> list[bytes]:
        """A digest of each graph: its nodes, edges and attributes."""
        arrays = self.graphs.arrays
        found = [xxhash.xxh3_128() for _ in range(len(self.graphs))]
        for name in ("nodes", "edges", "edge_attributes", "context"):
            if name not in arrays:
                continue
            owner = arrays.get(f"{name}_owner", torch.arange(len(self.graphs)))
            sizes = torch.bincount(owner, minlength=len(self.graphs)).tolist()
            for digest, piece in zip(found, arrays[name].split(sizes), strict=True):
                digest.update(piece.contiguous().numpy())
        return [digest.digest() for digest in found]

    def describe_leaks(self, parts: dict[str, Tensor]) -> dict[str, str]:
        """What a run says of held-out graphs that are in training too."""
        return describe_leaks(self.digests(), parts)


@dataclass(frozen=True)
class GraphSplits:
    """The three parts, and what is predicted."""

    train: Graphs
    valid: Graphs
    test: Graphs
    labels: tuple[str, ...]
    """The classes; nothing where numbers are to be predicted."""
    targets: tuple[str, ...]
    """The names of the numbers; nothing where there are classes."""
    facts: dict[str, Any] = field(default_factory=dict)
