"""Sources of graphs for recipes: from the user's files, or embedded.

    NodeSource     one graph, classes of its nodes        a folder (Planetoid; nodes.csv and edges.csv), .json or .pt;
                   all of it at every step, or (SampledNodeSource) some neighbours of some nodes
    GraphSource    many graphs, a class or numbers each   a .jsonl of graphs, or a .csv of SMILES
    LinkSource     one graph, which links are missing     as NodeSource, or an edge list alone

The cut into train, valid and test does not depend on the run's seed. What is odd about a file is told and mended; with
--data.strict it is a mistake.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from descend.data.graphs.attributed import AttributedGraph
from descend.data.graphs.embedded import PROPERTY, RINGS, load_graph, load_graphs
from descend.data.graphs.facts import describe_graphs, describe_links, describe_nodes
from descend.data.graphs.features import Kind, NodeFeatures, Scale
from descend.data.graphs.formats import read_graph_set, read_link_graph, read_node_graph
from descend.data.graphs.graph_set import GraphSet, GraphSplits
from descend.data.graphs.links import LinkBatches, LinkSplits, cut_links
from descend.data.graphs.node_graph import NodeGraph, NodeSplits
from descend.data.graphs.sampling import NeighbourBatches, NeighbourSampler, NeighboursInOrder
from descend.data.images.labelled import check_shares
from descend.ranges import Count, Fraction, Whole

Embedded = Literal["karate", "imports", "planted"]


@dataclass(frozen=True)
class NodeSource:
    """Which graph, which of its nodes teach, and what nodes bring along."""

    path: str = ""
    """Planetoid folder, a folder with nodes.csv and edges.csv, or a .json; empty: the embedded graph."""
    embedded: Embedded = "karate"
    """Graph that is used without --data.path."""
    size: Count = 600
    """Nodes of the planted graph."""
    features: Kind = "auto"
    """Attributes of the nodes; auto: their own, else one-hot up to 5,000 nodes, else the degree."""
    scale: Scale = "none"
    """rows: each node's attributes sum to 1 (bags of words); columns: each attribute standardized."""
    directed: bool = False
    """Messages run along an edge of the file in its direction only."""
    valid: Fraction = 0.15
    """Share of the labelled nodes that selects the checkpoint, where the file gives no parts."""
    test: Fraction = 0.15
    """Share held out for the final test, where the file gives no parts."""
    per_class: Whole = 0
    """Training nodes of each class at most, where the file gives no parts; 0: all that are left."""
    strict: bool = False
    """Refuse a file with anything odd in it: loops, duplicates, isolated nodes, edges in one direction only."""

    def load(self) -> NodeGraph:
        """The graph as the file says it."""
        if not self.path:
            return load_graph(self.embedded, self.size)
        found = read_node_graph(self.path, self.directed)
        if self.strict:
            found.notes.refuse()
        return found

    def read(self) -> NodeSplits:
        """Read, checked and cut; the attributes of the nodes as a model takes them."""
        return self.prepare(self.load())

    def prepare(self, found: NodeGraph) -> NodeSplits:
        """The same of a graph that was read."""
        parts = found.cut(self.valid, self.test, self.per_class)
        graph = replace(found.graph, nodes=self.fit(found)(found.graph))
        facts = describe_nodes(found, parts)
        return NodeSplits(graph, found.y, **parts, labels=found.labels, names=found.names, facts=facts)

    def fit(self, found: NodeGraph) -> NodeFeatures:
        """What must be kept with the model to read another graph."""
        return NodeFeatures.fit(found.graph, self.features, self.scale, found.labels, found.columns)

    def read_unseen(self, path: str, features: NodeFeatures) -> NodeGraph:
        """Another graph as a trained model takes it, with the classes that the model knows."""
        return match_graph(read_node_graph(path, self.directed), features, path)

    @property
    def source(self) -> str:
        """Where the graph comes from, for people."""
        return (
            self.path
            or {
                "karate": "Zachary's karate club",
                "imports": "the imports of Python's standard library",
                "planted": "a planted partition",
            }[self.embedded]
        )


@dataclass(frozen=True)
class SampledNodeSource(NodeSource):
    """The same for a graph that is too large to be seen at once: batches of nodes, each with a tree of neighbours."""

    sample: tuple[Whole, ...] = (25, 10)
    """Neighbours that are drawn at each hop, one number for each layer of the model; 0: all of them."""

    def stream(self, splits: NodeSplits, batch: int, seed: int, where: tuple[int, int] = (0, 1)) -> NeighbourBatches:
        """Training nodes, `batch` at a time, other neighbours in every epoch."""
        return NeighbourBatches(self.sampler(splits), splits.train, batch, seed, *where)

    def held_out(self, splits: NodeSplits, part: str) -> NeighboursInOrder:
        """The nodes of a part, with the same neighbours each time."""
        return NeighboursInOrder(self.sampler(splits), splits.rows(part))

    def sampler(self, splits: NodeSplits) -> NeighbourSampler:
        return NeighbourSampler(splits.graph, splits.y, self.sample)


@dataclass(frozen=True)
class GraphSource:
    """Which graphs, and what to predict of each."""

    path: str = ""
    """A .jsonl of graphs, or a .csv with a column of SMILES; empty: generated ones."""
    embedded: Literal["rings", "molecules"] = "rings"
    """rings: two rings or not; molecules: a number."""
    graphs: Count = 1000
    """How many graphs are generated."""
    target: str = ""
    """Field or column to predict; empty: "y", or the one column beside the SMILES."""
    predict: Literal["auto", "classes", "numbers"] = "auto"
    """auto: classes for text, truth values and few whole numbers; else numbers."""
    directed: bool = False
    """Messages run along an edge of the file in its direction only."""
    valid: Fraction = 0.15
    """Share of the graphs that selects the checkpoint, where the file gives no parts."""
    test: Fraction = 0.15
    """Share held out for the final test, where the file gives no parts."""
    strict: bool = False
    """Refuse a file with anything odd in it."""

    def load(self) -> GraphSet:
        """The graphs as the file says them."""
        if not self.path:
            return generate_graphs(self.embedded, self.graphs)
        found = read_graph_set(self.path, self.target, self.predict, self.directed)
        if self.strict:
            found.notes.refuse()
        return found

    def read(self) -> GraphSplits:
        """Read, checked and cut."""
        found = self.load()
        rows = found.cut(self.valid, self.test)
        facts = describe_graphs(found.graphs, found.labels, found.targets) | found.describe_leaks(rows)
        parts = {part: found.graphs.take(which) for part, which in rows.items()}
        return GraphSplits(**parts, labels=found.labels, targets=found.targets, facts=facts | found.notes.facts())

    @property
    def source(self) -> str:
        """Where the graphs come from, for people."""
        return self.path or "generated molecule-like graphs"


def generate_graphs(name: str, size: int) -> GraphSet:
    """The embedded ones, with what they are called."""
    graphs = load_graphs(name, size)
    return GraphSet(graphs, RINGS, ()) if name == "rings" else GraphSet(graphs, (), (PROPERTY,))


@dataclass(frozen=True)
class LinkSource:
    """Which graph, which of its links are held out, and what nodes bring along."""

    path: str = ""
    """As for nodes, or an edge list alone (.csv, .tsv, .txt); empty: the embedded graph."""
    embedded: Embedded = "karate"
    """Graph that is used without --data.path."""
    size: Count = 600
    """Nodes of the planted graph."""
    features: Kind = "auto"
    """Attributes of the nodes; auto: their own, else one-hot up to 5,000 nodes, else the degree."""
    scale: Scale = "none"
    """rows: each node's attributes sum to 1 (bags of words); columns: each attribute standardized."""
    directed: bool = False
    """An edge of the file leads in its direction only."""
    valid: Fraction = 0.05
    """Share of the links that selects the checkpoint, where the file gives no parts."""
    test: Fraction = 0.1
    """Share held out for the final test, where the file gives no parts."""
    negatives: Count = 1
    """Unlinked pairs for each link of a training step."""
    hidden: Fraction = 0.0
    """Share of the training links that a step predicts and that carry no messages then; 0: all do both."""
    strict: bool = False
    """Refuse a file with anything odd in it: loops, duplicates, isolated nodes, held-out links in training too."""

    def load(self) -> NodeGraph:
        """The graph as the file says it."""
        if not self.path:
            return load_graph(self.embedded, self.size)
        found = read_link_graph(self.path, self.directed)
        if self.strict:
            found.notes.refuse()
        return found

    def read(self) -> LinkSplits:
        """Read, checked and cut; the attributes of the nodes as a model takes them."""
        found = self.load()
        if found.link_parts is None:
            check_shares(self.valid, self.test)
        graph = replace(found.graph, nodes=self.fit(found)(self.visible(found)))
        splits = cut_links(graph, found.names, self.valid, self.test, found.link_parts)
        return replace(splits, facts=describe_links(splits, graph) | found.notes.facts())

    def visible(self, found: NodeGraph) -> AttributedGraph:
        """The graph of the training links alone: the degree of a node must not tell its held-out links."""
        return cut_links(found.graph, found.names, self.valid, self.test, found.link_parts).graph

    def fit(self, found: NodeGraph) -> NodeFeatures:
        """What must be kept with the model."""
        return NodeFeatures.fit(self.visible(found), self.features, self.scale, (), found.columns)

    def stream(self, splits: LinkSplits, seed: int) -> LinkBatches:
        """Training batches: the graph, its links, and unlinked pairs."""
        return LinkBatches(splits, seed, self.negatives, self.hidden)

    @property
    def source(self) -> str:
        """Where the graph comes from, for people."""
        return NodeSource(self.path, self.embedded).source


def match_graph(found: NodeGraph, features: NodeFeatures, path: str) -> NodeGraph:
    """A graph with the attributes and the class numbers of a trained model; classes that it does not know are left
    out."""
    number = {name: k for k, name in enumerate(features.labels)}
    index = torch.tensor([number.get(name, -1) for name in found.labels] + [-1])
    y: Tensor = index[found.y]
    return replace(found, y=y, labels=features.labels, graph=replace(found.graph, nodes=features(found.graph)))
