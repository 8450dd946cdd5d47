"""What networks of graphs show: the graph with its predictions, a map of the nodes, attention on edges, and whole
graphs that went wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from descend.contracts import Exhibit
from descend.data.graphs.attributed import Graphs
from descend.data.graphs.node_graph import NodeSplits
from descend.data.graphs.question import Question
from descend.interpret.representations import project
from descend.metrics.regression import mean_absolute_error, r_squared, root_mean_squared_error
from descend.ops.graph.structure import Graph
from descend.views.attempts import show_each
from descend.views.classes import rank_mistakes, show_classification
from descend.views.graph_layout import Picture, lay_out
from descend.views.message_passing import draw_messages

Makers = dict[str, Callable[[], Exhibit | list[Exhibit]]]
MAPPED, LEAST_MAPPED = 400, 8  # nodes of a map
WORST = 12  # whole graphs that are drawn


@runtime_checkable
class AttendsEdges(Protocol):
    """A model that says how much each edge counts: α (e + n, heads) of every layer, the edges first."""

    def attention(self, graph: Graph) -> list[Tensor]: ...


@runtime_checkable
class EmbedsNodes(Protocol):
    """A model with a vector for each node."""

    def hidden(self, graph: Graph) -> Tensor: ...


@torch.no_grad()
def show_nodes(model: Any, graph: Graph, z: Tensor, splits: NodeSplits, rows: Tensor, of: str) -> list[Exhibit]:
    """All of it for the nodes of these rows, which are judged; z (n, classes) are the logits, `of` names the rows."""
    p = z.softmax(dim=-1)
    picture = lay_out(len(splits.y), splits.graph.edges, rows)
    makers: Makers = {
        "Predictions": lambda: show_classification(p[rows], splits.y[rows], splits.labels, "nodes"),
        "The graph": lambda: draw_predictions(picture, p, splits, rows, of),
    }
    if isinstance(model, EmbedsNodes) and len(rows) >= LEAST_MAPPED:
        makers["Map of the nodes"] = lambda: show_map(model, graph, splits, rows, of)
    if isinstance(model, AttendsEdges):
        makers["Attention on edges"] = lambda: draw_attention(model, graph, picture, p, splits)
    makers["Message passing"] = lambda: draw_messages(model, graph, picture, p, splits, rows)
    return show_each(makers)


def draw_predictions(picture: Picture, p: Tensor, splits: NodeSplits, judged: Tensor, of: str) -> Exhibit:
    """Nodes in the colours of their predicted classes; of those that are judged the wrong ones are ringed."""
    predicted, n = p.argmax(dim=-1), len(splits.y)
    marks = [""] * n
    for i in judged[predicted[judged] != splits.y[judged]].tolist():
        marks[i] = "wrong"
    if not torch.equal(splits.train, judged):
        for i in splits.train.tolist():
            marks[i] = "given"
    content = describe(picture, predicted, p, splits)
    rings = [marks[i] for i in picture.rows.tolist()]
    there = int(torch.isin(picture.rows, judged).sum())
    note = (
        f"Colours are predicted classes. Ringed in red: {rings.count('wrong')} of {there:,} shown {of} whose class is "
    )
    note += "another; in a dark ring: those that were trained on." if "given" in rings else "another."
    if len(picture.rows) < n:
        note += f" A linked sample of {len(picture.rows):,} of {n:,} nodes."
    return Exhibit("graph", "The graph and its predictions", {**content, "rings": rings}, note)


def describe(picture: Picture, predicted: Tensor, p: Tensor, splits: NodeSplits) -> dict[str, Any]:
    """What every picture of this graph has."""
    rows, labels, said = picture.rows, splits.labels, []
    for i in rows.tolist():
        k, y = int(predicted[i]), int(splits.y[i])
        true = f", true: {labels[y]}" if y >= 0 else ""
        said.append(f"{splits.names[i]}: {labels[k]} ({float(p[i, k]):.0%}){true}")
    return {
        "at": picture.at.tolist(),
        "edges": picture.pairs.tolist(),
        "classes": predicted[rows].tolist(),
        "labels": list(labels),
        "names": [splits.names[i] for i in rows.tolist()],
        "said": said,
    }


def show_map(model: Any, graph: Graph, splits: NodeSplits, rows: Tensor, of: str) -> Exhibit:
    """The vectors of nodes in the plane, by their true classes: neighbours stay neighbours (t-SNE)."""
    known = (splits.y >= 0).nonzero().flatten()
    if len(known) <= MAPPED:
        rows, of = known, "nodes with a class"
    rows = rows[:: -(-len(rows) // MAPPED)]
    h = model.hidden(graph)[rows].cpu()
    xy, y = h if h.shape[1] == 2 else project(h, "tsne"), splits.y[rows]
    clouds = {name: xy[y == k].tolist() for k, name in enumerate(splits.labels) if (y == k).any()}
    note = f"{len(rows):,} {of} by t-SNE of their {h.shape[1]} numbers; distances between far groups mean nothing."
    if h.shape[1] == 2:
        note = f"{len(rows):,} {of} by the two numbers that the last layer makes of each."
    return Exhibit("points", "Map of the nodes", clouds, note)


def draw_attention(model: Any, graph: Graph, picture: Picture, p: Tensor, splits: NodeSplits) -> Exhibit:
    """Edges by how much attention the first layer pays to them, mean over the heads and both directions."""
    share, links = model.attention(graph)[0].mean(dim=1).cpu(), graph.links
    relative = share[: links.e] * (links.degree[links.target] + 1)  # 1: as much as every neighbour gets on average
    index = torch.full((links.n,), -1)
    index[picture.rows] = torch.arange(len(picture.rows))
    ends = index[torch.stack([links.source, links.target], dim=1)]
    inside = (ends >= 0).all(dim=1) & (ends[:, 0] != ends[:, 1])
    keys = ends[inside].amin(dim=1) * len(picture.rows) + ends[inside].amax(dim=1)
    _, place, counts = keys.unique(return_inverse=True, return_counts=True)  # in the order of the picture's pairs
    weight = relative.new_zeros(len(counts)).index_add(0, place, relative[inside]) / counts
    content = {**describe(picture, p.argmax(dim=-1), p, splits), "weights": spread(weight).tolist()}
    span = f"from {float(relative.min()):.2f} to {float(relative.max()):.2f} of an equal share"
    note = f"First layer, mean over heads: {span}; darker edges count more. Colours are predicted classes."
    return Exhibit("graph", "Attention on edges", content, note)


def spread(weight: Tensor) -> Tensor:
    """Weights as ranks in 0..1, so that small differences are seen."""
    if len(weight) < 2:
        return torch.ones_like(weight)
    return weight.argsort().argsort().to(weight.dtype) / (len(weight) - 1)


def show_graphs(z: Tensor, graphs: Graphs, question: Question) -> list[Exhibit]:
    """Predictions for held-out graphs by the outputs z (g, ..), and those that are farthest off."""
    if not question.labels:
        makers: Makers = {"Predicted against true": lambda: show_fits(question.restore(z), graphs.y.double(), question)}
        makers["Graphs"] = lambda: draw_errors(question.restore(z), graphs, question)
        return show_each(makers)
    p = z.softmax(dim=-1)
    return show_each(
        {
            "Predictions": lambda: show_classification(p, graphs.y, question.labels, "graphs"),
            "Graphs": lambda: draw_mistakes(p, graphs, question.labels),
        }
    )


def show_fits(predicted: Tensor, y: Tensor, question: Question) -> list[Exhibit]:
    """Predicted against true for each target."""
    shown = []
    for k, name in enumerate(question.targets):
        a, b = predicted[:, k], y[:, k]
        errors = f"MAE {mean_absolute_error(a, b):.4g}, RMSE {root_mean_squared_error(a, b):.4g}"
        content = {"true": b.tolist(), "predicted": a.tolist(), "name": name}
        note = f"Validation graphs: {errors}; R² {r_squared(a, b):.4f}."
        shown.append(Exhibit("against", f"Predicted against true: {name}", content, note))
    return shown


def draw_errors(predicted: Tensor, graphs: Graphs, question: Question) -> Exhibit:
    """The graphs with the largest errors, in standard deviations."""
    off = ((predicted - graphs.y) / torch.tensor(question.std).double()).abs().amax(dim=1)
    rows = off.argsort(descending=True)[:WORST].tolist()
    list_numbers = lambda values: ", ".join(f"{v:.3g}" for v in values)
    said = [f"{list_numbers(predicted[i].tolist())} instead of {list_numbers(graphs.y[i].tolist())}" for i in rows]
    return draw_some(graphs, rows, said, "Largest errors", "Validation graphs, the largest error first.")


def draw_mistakes(p: Tensor, graphs: Graphs, labels: Sequence[str]) -> Exhibit:
    """The most confident mistakes; where there are none, the least sure answers."""
    rows, y = rank_mistakes(p, graphs.y, WORST), graphs.y
    title, note = "Most confident mistakes", "Validation graphs, the surest first."
    if not rows:
        rows = p.amax(dim=-1).argsort()[:WORST].tolist()
        title, note = "Least sure answers", "Validation graphs. All of them are right, these with the least certainty."
    k = p.argmax(dim=-1)
    said = [f"{labels[int(k[i])]} ({float(p[i].max()):.0%}); true: {labels[int(y[i])]}" for i in rows]
    return draw_some(graphs, rows, said, title, note)


def draw_some(graphs: Graphs, rows: Sequence[int], said: Sequence[str], title: str, note: str) -> Exhibit:
    """Graphs side by side; the colour of a node is its largest attribute."""
    shown = []
    for i in rows:
        graph = graphs.one(i)
        picture = lay_out(len(graph), graph.edges)
        kinds = graph.nodes[picture.rows].argmax(dim=-1) if graph.nodes.shape[1] > 1 else torch.zeros(len(picture.rows))
        shown.append({"at": picture.at.tolist(), "edges": picture.pairs.tolist(), "classes": kinds.long().tolist()})
    names = [graphs.names[i] if graphs.names else f"graph {i + 1}" for i in rows]
    captions = [f"{name}: {text}" for name, text in zip(names, said, strict=True)]
    return Exhibit("graphs", title, {"graphs": shown, "captions": captions}, note)
