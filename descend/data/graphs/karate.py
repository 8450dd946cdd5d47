"""Zachary's karate club: 34 members, 78 friendships, and the side that each took when the club split.

Node 0 is the instructor, Mr. Hi; node 33 the administrator, here as in networkx "Officer". Only these two are trained
on; 8 others select, and 24 test. The weights of the friendships (common activities) are edge attributes.

Systems: data-to-graph-converters
"""

from __future__ import annotations

import networkx as nx
import torch
from torch import Tensor

from descend.data.graphs.attributed import link
from descend.data.graphs.node_graph import NodeGraph
from descend.data.images.labelled import split_by_class

SIDES = ("Mr. Hi", "Officer")
LEADERS = (0, 33)
SELECTING = 0.25  # of the others


def load_karate() -> NodeGraph:
    """The club, every member with its side; without attributes of the members."""
    club = nx.karate_club_graph()
    pairs = torch.tensor(list(club.edges))
    weights = torch.tensor([float(w) for _, _, w in club.edges(data="weight")])
    y = torch.tensor([SIDES.index(club.nodes[i]["club"]) for i in club])
    graph = link(torch.zeros(len(y), 0), pairs, edge_attributes=weights[:, None])
    return NodeGraph(graph, y, SIDES, tuple(f"member {i}" for i in club), cut_members(y), columns=())


def cut_members(y: Tensor) -> dict[str, Tensor]:
    """The two leaders teach; of the others a quarter of each side selects."""
    others = torch.tensor([i for i in range(len(y)) if i not in LEADERS])
    valid, test = (others[rows] for rows in split_by_class(y[others], (SELECTING,)))
    return {"train": torch.tensor(LEADERS), "valid": valid, "test": test}
