"""Scenes of an arena whose relations are known: who fights whom, who judges, who stands on which mat, who sits beside.

    a mat         two fighters and a judge stand on it: near its centre
    coaches       stand as near to a mat, in no relation to anybody
    spectators    in pairs, beside each other, away from the mats
    features      what the entity looks like (6 numbers: its kind one-hot, with noise) and where it is (x, y)
    relations     0 none · 1 fights · 2 judges · 3 stands on · 4 sits beside, between two entities, both ways

Two mats in most scenes: fighters of different mats do not fight, so that neither the kinds nor the places of two
entities tell their relation by themselves. The order of the entities is random. It is the picture of DLN: two fighters,
a judge and a mat, from all pairs to few edges.

Systems: graph-task-labs
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from descend.seeds import generator

KINDS = ("mat", "fighter", "judge", "coach", "spectator")
RELATIONS = ("none", "fights", "judges", "stands on", "sits beside")
LOOKS = 6  # numbers that say what an entity looks like; one of them is noise
WIDTH = LOOKS + 2
SPREAD, BESIDE, LOOK_NOISE = 0.06, 0.05, 0.35  # around a mat's centre, between neighbours, of the look


@dataclass(frozen=True, eq=False)
class ArenaScenes:
    """Entities (n, 8) end to end, the scene and kind of each (n), the relation (n, n) of each two: 0 across scenes."""

    nodes: Tensor
    owner: Tensor
    kinds: Tensor
    relation: Tensor


def draw_arena(n: int, seed: int = 0) -> ArenaScenes:
    """n scenes; scene i belongs to (seed, i)."""
    scenes = [draw_scene(generator(seed, i)) for i in range(n)]
    nodes, kinds, relations = zip(*scenes, strict=True)
    sizes = torch.tensor([len(part) for part in nodes])
    owner = torch.arange(n).repeat_interleave(sizes)
    return ArenaScenes(torch.cat(nodes), owner, torch.cat(kinds), torch.block_diag(*relations))


def draw_scene(random: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Entities (n, 8), kinds (n) and relations (n, n)."""
    mats = int(torch.randint(1, 4, (), generator=random)) // 2 + 1
    seats = int(torch.randint(1, 4, (), generator=random))
    centres = torch.stack([(torch.arange(mats) + 0.5) / mats, torch.full((mats,), 0.3)], dim=1)
    centres = centres + 0.1 * (torch.rand(mats, 2, generator=random) - 0.5)
    kinds: list[int] = []
    places: list[Tensor] = []
    links: list[tuple[int, int, int]] = []
    for centre in centres:
        first = len(kinds)
        kinds += [0, 1, 1, 2, 3, 3]
        places += [centre, *(centre + SPREAD * torch.randn(5, 2, generator=random))]
        links += [(first + 1, first + 2, 1), (first + 3, first + 1, 2), (first + 3, first + 2, 2)]
        links += [(first + i, first, 3) for i in (1, 2, 3)]
    for seat in range(seats):
        first, where = len(kinds), torch.tensor([(seat + 0.5) / seats, 0.8])
        kinds += [4, 4]
        places += [where - torch.tensor([BESIDE, 0]), where + torch.tensor([BESIDE, 0])]
        links.append((first, first + 1, 4))
    kind, order = torch.tensor(kinds), torch.randperm(len(kinds), generator=random)
    relation = torch.zeros(len(kinds), len(kinds), dtype=torch.long)
    for u, v, r in links:
        relation[u, v] = relation[v, u] = r
    looks = torch.nn.functional.one_hot(kind, LOOKS) + LOOK_NOISE * torch.randn(len(kind), LOOKS, generator=random)
    return torch.cat([looks, torch.stack(places)], dim=1)[order], kind[order], relation[order][:, order]
