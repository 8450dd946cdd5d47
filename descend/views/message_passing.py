"""Whom the answer for a node hears: messages go one step in a layer, so L layers bring what is at most L steps away.

influence of u on v = Σ_i |∂ log p_k(v) / ∂x_{u,i}|        k the predicted class of v; 0 beyond the reach of the layers
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from descend.contracts import Exhibit
from descend.data.graphs.node_graph import NodeSplits
from descend.ops.graph.structure import Graph
from descend.views.graph_layout import Picture

UNHEARD = "not heard"


def measure_influence(model: Any, graph: Graph, v: int) -> Tensor:
    """How much each node's attributes count for the answer of node v: (n), a share of the whole."""
    with torch.enable_grad():
        x = graph.nodes.detach().clone().requires_grad_()
        log_p = model(graph.update(x))[v].log_softmax(dim=-1)
        (slope,) = torch.autograd.grad(log_p.max(), x)
    found = slope.abs().sum(dim=1).cpu()
    return found / found.sum().clamp(min=1e-12)


def count_steps(n: int, edges: Tensor, v: int) -> Tensor:
    """How many edges (source, target) lead from each node to v: (n); n where none do."""
    steps = torch.full((n,), n)
    steps[v] = 0
    for far in range(1, n):
        reached = edges[:, 0][steps[edges[:, 1]] == far - 1]
        fresh = reached[steps[reached] == n]
        if not len(fresh):
            break
        steps[fresh] = far
    return steps


def draw_messages(model: Any, graph: Graph, picture: Picture, p: Tensor, splits: NodeSplits, judged: Tensor) -> Exhibit:
    """The least certain of the judged nodes, and whom its answer hears, by the steps between them."""
    shown = picture.rows
    asked = judged[torch.isin(judged, shown)]
    v = int(asked[p[asked].max(dim=-1).values.argmin()])
    share, steps = measure_influence(model, graph, v), count_steps(len(splits.y), splits.graph.edges, v)
    far = int(steps[share > 0].max()) if (share > 0).any() else 0
    labels = ["the node itself", *(f"{k} step{'s' * (k > 1)} away" for k in range(1, far + 1)), UNHEARD]
    classes = torch.where(share > 0, steps, far + 1)[shown].tolist()
    name, heard = splits.names[v], int((share > 0).sum())
    content = {
        "at": picture.at.tolist(),
        "edges": picture.pairs.tolist(),
        "classes": classes,
        "labels": labels,
        "names": [splits.names[i] for i in shown.tolist()],
        "said": [f"{splits.names[i]}: {float(share[i]):.1%} of the influence" for i in shown.tolist()],
        "rings": ["given" if i == v else "" for i in shown.tolist()],
    }
    note = (
        f"The answer for {name} (ringed), the least certain one, hears {heard:,} of {len(share):,} nodes; "
        f"{float(share[v]):.0%} of the influence is its own. The mouse says how much each counts."
    )
    return Exhibit("graph", "Message passing", content, note)
