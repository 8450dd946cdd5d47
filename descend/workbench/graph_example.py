"""A graph to begin with on the page of a model that answers graphs: the one of its run, or the first of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from descend.data.graphs.node_graph import NodeGraph
from descend.kinds.saved import read_saved
from descend.report.history import read_history

NODES, EDGES = 300, 3000  # of a graph that a page can hold
SMALL = {"nodes": 4, "edges": [[0, 1], [1, 2], [2, 3]]}


def give_graph(run: Path) -> dict[str, Any]:
    """As JSON, the way /v1/predict takes it; a path of four nodes where the run's own is too large."""
    data = read_saved(read_history(run).recipe, run / "recipe.json")[1].data
    found = data.load()
    graph, names = (found.graph, list(found.names)) if isinstance(found, NodeGraph) else (found.graphs.one(0), [])
    if len(graph) > NODES or len(graph.pairs) > EDGES:
        return SMALL
    told: dict[str, Any] = {"nodes": graph.nodes.tolist() if graph.nodes.shape[1] else len(graph)}
    told["edges"] = graph.pairs.tolist()
    if graph.edge_attributes.shape[1]:
        told["edge_attributes"] = graph.pair_attributes.tolist()
    if len(graph.context):
        told["context"] = graph.context.tolist()
    told |= {"names": names} if names else {}
    return told | ({"directed": True} if graph.directed else {})
