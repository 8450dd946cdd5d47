"""What a predictor of links shows: how well it ranks, beside what the degrees alone say, and the links it expects."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from descend.contracts import Exhibit
from descend.data.graphs.links import LinkSplits
from descend.metrics.ranking import average_precision, find_auc
from descend.ops.graph.candidates import rank_new_links
from descend.ops.graph.structure import Graph
from descend.views.attempts import show_each
from descend.views.graph_layout import lay_out

Score = Callable[[Tensor], Tensor]
"""Pairs (m, 2) -> logits (m)"""
POINTS = 200  # of the ROC curve
EXPECTED = 20  # links that are drawn


@torch.no_grad()
def show_links(score: Score, graph: Graph, splits: LinkSplits) -> list[Exhibit]:
    """Scores, the ROC curve, and the graph with the most probable new links."""
    z = score(splits.valid.pairs).cpu()
    return show_each(
        {
            "Scores": lambda: show_scores(z, splits),
            "ROC curve": lambda: show_roc(z, splits),
            "Expected links": lambda: draw_expected(score, graph, splits),
        }
    )


def show_scores(z: Tensor, splits: LinkSplits) -> Exhibit:
    """AUC and average precision, of the model and of the degrees."""
    y, popular = splits.valid.y, splits.score_popularity(splits.valid.pairs)
    rows = [
        [name, round(find_auc(score, y), 4), round(average_precision(score, y), 4)]
        for name, score in (("the model", z), ("popularity: the product of the degrees", popular))
    ]
    note = f"{int(y.sum()):,} held-out links and as many pairs without one (validation)."
    return Exhibit("table", "Ranking of links", {"columns": ["", "AUC", "average precision"], "rows": rows}, note)


def show_roc(z: Tensor, splits: LinkSplits) -> Exhibit:
    """The share of the links that are found against the share of other pairs that are taken for links."""
    curves = {}
    false = torch.linspace(0, 1, POINTS, dtype=torch.float64)
    for name, score in (("the model", z), ("popularity", splits.score_popularity(splits.valid.pairs))):
        y = splits.valid.y[score.double().argsort(descending=True)]
        hits, misses = (torch.cat([y.new_zeros(1), part.cumsum(0)]).double() for part in (y, 1 - y))
        place = torch.searchsorted(misses / misses[-1], false, right=True) - 1
        curves[name] = (hits / hits[-1])[place].tolist()
    content = {"x": false.tolist(), "y": curves | {"chance": false.tolist()}}
    axes = {"x_label": "share of other pairs taken for links", "y_label": "share of links found"}
    return Exhibit("curve", "ROC curve", content | axes, "Validation pairs.")


def draw_expected(score: Score, graph: Graph, splits: LinkSplits) -> Exhibit:
    """The graph of the training links with the most probable ones that it does not have."""
    n = len(splits.graph)
    pairs, scores = rank_new_links(score, graph.links, splits.graph.directed, EXPECTED)
    picture = lay_out(n, splits.graph.edges, pairs.flatten().unique())
    index = torch.full((n,), -1)
    index[picture.rows] = torch.arange(len(picture.rows))
    ends = index[pairs]
    shown = ends[(ends >= 0).all(dim=1)].tolist()
    names = [splits.names[i] for i in picture.rows.tolist()]
    best = [
        f"{splits.names[u]} and {splits.names[v]} ({p:.0%})"
        for (u, v), p in zip(pairs.tolist()[:5], scores.sigmoid().tolist(), strict=False)
    ]
    content = {
        "at": picture.at.tolist(), "edges": picture.pairs.tolist(), "classes": [0] * len(names), "labels": ["node"],
        "names": names, "extra": shown,
    }  # fmt: skip
    note = (
        f"Grey: links of training. Orange: the {len(pairs)} most probable ones that are not there. {'; '.join(best)}."
    )
    return Exhibit("graph", "Expected links", content, note)
