"""Neighbourhood sampling: of each node that is learned, a tree of some neighbours, of some of theirs, and so on.

    hop 1: at most k₁ neighbours of the node, hop 2: at most k₂ of each of those, .. drawn without replacement
    m of N values: E[mean] = the mean of all N, Var[mean] = S² / m · (1 − m / N)

The tree is an ordinary graph: node 0 is the one that is asked for, every edge leads one hop nearer to it. After as many
layers as hops, node 0 has what it has in the whole graph if every k is at least the degree. (So for layers that need a
sender's vector only; one that needs the sender's degree, GCN's symmetric form, sees that of the tree.) A neighbour that
is met twice stands there twice. Trees share nothing, so a batch can be cut, joined and spread over processes, and a
node's numbers do not depend on what else is in its batch.

Random numbers are a function of (seed, epoch, node asked for, place in the tree): a counter goes through a mixing
function (splitmix64). Positions are drawn by Floyd's method: for j = N−m .. N−1 draw t in 0..j; take t, or j if t is
taken. So a node with a million neighbours costs no more than its sample; the only loop is the one over m.

Systems: neighbour-sampling
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from descend.contracts import Batch
from descend.data.graphs.attributed import AttributedGraph
from descend.data.streams.arrays import Cursor
from descend.data.streams.batches import join_batches
from descend.errors import Mistake
from descend.ops.graph.structure import group
from descend.seeds import generator

STRIDE = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
UNIT = 2.0**-53


def mix(z: np.ndarray) -> np.ndarray:
    """Numbers that look random, of a counter (uint64): splitmix64."""
    z = (z ^ (z >> np.uint64(30))) * FIRST
    z = (z ^ (z >> np.uint64(27))) * SECOND
    return np.asarray(z ^ (z >> np.uint64(31)))


def variance_of_mean(values: Tensor, m: int) -> Tensor:
    """S² / m · (1 − m / N) of the mean of m of N values (N) that are drawn without replacement."""
    return values.var() / m * (1 - m / len(values))


def start_keys(seed: int, epoch: int, nodes: np.ndarray) -> np.ndarray:
    """A key for each node of an epoch."""
    base = np.random.SeedSequence([seed % 2**64, epoch]).generate_state(1, np.uint64)
    return mix(base + nodes.astype(np.uint64) * STRIDE)


def draw_subsets(keys: np.ndarray, sizes: np.ndarray, m: int) -> np.ndarray:
    """m different numbers of 0..size−1 for each key (r, m), all subsets equally likely; every size is above m."""
    found = np.empty((len(keys), m), np.int64)
    steps = np.arange(1, m + 1, dtype=np.uint64) * STRIDE
    for i in range(m):
        last = sizes - m + i
        u = (mix(keys + steps[i]) >> np.uint64(11)).astype(np.float64) * UNIT
        drawn = (u * (last + 1)).astype(np.int64)
        taken = (found[:, :i] == drawn[:, None]).any(axis=1)
        found[:, i] = np.where(taken, last, drawn)
    return found


class Trees(NamedTuple):
    """Trees end to end, as streams batch graphs."""

    nodes: Tensor
    """The number of each node in the whole graph (m)."""
    owner: Tensor
    edges: Tensor
    """Child, parent (m − b, 2), numbered within the tree."""
    edges_owner: Tensor
    edge_ids: Tensor
    """The number of each edge in the whole graph."""


class Neighbourhoods:
    """Who leads to whom, in lists, so that the neighbours of a node are found at once."""

    def __init__(self, graph: AttributedGraph):
        rows = group(graph.edges[:, 1], len(graph))
        self.edge, self.starts = rows.order.numpy(), rows.starts.numpy()
        self.source = graph.edges[:, 0][rows.order].numpy()

    def sample(self, nodes: Tensor, sizes: tuple[int, ...], seed: int, epoch: int) -> Trees:
        """A tree for each of the nodes (b); of size 0 a hop takes all neighbours."""
        node = nodes.numpy()
        tree, key = np.arange(len(node)), start_keys(seed, epoch, node)
        here = np.arange(len(node))  # where the nodes of the last hop stand among all
        hops = [(node, tree, np.full(len(node), -1), np.full(len(node), -1))]
        count = len(node)
        for size in sizes:
            parent, slot, place = self.draw(node, key, size)
            node, tree = self.source[place], tree[parent]
            key = mix(key[parent] + (slot.astype(np.uint64) + np.uint64(1)) * FIRST)
            hops.append((node, tree, here[parent], self.edge[place]))
            here = np.arange(count, count + len(node))
            count += len(node)
        return lay_out([np.concatenate(part) for part in zip(*hops, strict=True)], len(nodes))

    def draw(self, node: np.ndarray, key: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of each neighbour that is taken: whose it is, which of its sample, and where it stands in the lists."""
        degree = self.starts[node + 1] - self.starts[node]
        taken = np.minimum(degree, size) if size else degree
        parent = np.repeat(np.arange(len(node)), taken)
        slot = np.arange(len(parent)) - np.repeat(taken.cumsum() - taken, taken)
        chosen = slot.copy()
        many = degree > taken
        if many.any():
            chosen[many[parent]] = draw_subsets(key[many], degree[many], size).ravel()
        return parent, slot, self.starts[node][parent] + chosen


def lay_out(found: list[np.ndarray], trees: int) -> Trees:
    """Hop by hop -> tree by tree, the nodes of each in the order of their hops."""
    node, tree, parent, edge = found
    order = np.argsort(tree, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    counts = np.bincount(tree, minlength=trees)
    within = place - (counts.cumsum() - counts)[tree]
    linked = order[parent[order] >= 0]
    edges = np.stack([within[linked], within[parent[linked]]], 1)
    parts = (node[order], tree[order], edges, tree[linked], edge[linked])
    return Trees(*(torch.from_numpy(part.astype(np.int64, copy=False)) for part in parts))


class NeighbourSampler:
    """Batches of trees of a graph and the classes of their first nodes."""

    def __init__(self, graph: AttributedGraph, y: Tensor, sizes: tuple[int, ...]):
        if not sizes or min(sizes) < 0:
            raise Mistake(f"--data.sample {sizes}: give how many neighbours of each hop, e.g. 25 10; 0 for all of them")
        self.graph, self.y, self.sizes = graph, y, sizes
        self.near = Neighbourhoods(graph)

    def __call__(self, rows: Tensor, seed: int, epoch: int) -> Batch:
        """`nodes`, `edges` and so on of a tree for each of the rows (b), `y` (b), and the rows as `ids`."""
        trees, graph = self.near.sample(rows, self.sizes, seed, epoch), self.graph
        found = {
            "ids": rows,
            "nodes": graph.nodes[trees.nodes],
            "nodes_owner": trees.owner,
            "edges": trees.edges,
            "edges_owner": trees.edges_owner,
            "y": self.y[rows],
        }
        if graph.edge_attributes.shape[1]:
            found["edge_attributes"] = graph.edge_attributes[trees.edge_ids]
            found["edge_attributes_owner"] = trees.edges_owner
        if len(graph.context):
            found["context"] = graph.context.expand(len(rows), -1)
        return found


class NeighbourBatches:
    """An endless stream: every node of `rows` once an epoch, in an order that belongs to seed and epoch, with a tree
    that belongs to seed, epoch and node."""

    def __init__(
        self, sampler: NeighbourSampler, rows: Tensor, batch: int, seed: int = 0, rank: int = 0, world: int = 1
    ):
        if batch > len(rows):
            raise Mistake(f"--batch {batch} is more than the {len(rows)} training nodes; use at most {len(rows)}")
        self.sampler, self.rows, self.seed = sampler, rows, seed
        self.cursor = Cursor(len(rows), batch, rank, world)
        self._epoch: tuple[int, Tensor] = (-1, rows)

    def __next__(self) -> Batch:
        return join_batches([self._piece(*piece) for piece in self.cursor.advance()])

    def _piece(self, e: int, start: int, stop: int) -> Batch:
        if self._epoch[0] != e:
            self._epoch = e, self.rows[torch.randperm(len(self.rows), generator=generator(self.seed, e))]
        return self.sampler(self._epoch[1][start:stop], self.seed, e)

    def state_dict(self) -> dict[str, Any]:
        return self.cursor.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.cursor.load_state_dict(state)


class NeighboursInOrder:
    """The same trees of the same nodes as often as asked: for validation and test."""

    def __init__(self, sampler: NeighbourSampler, rows: Tensor, batch: int = 512):
        self.sampler, self.rows, self.batch = sampler, rows, batch

    def __iter__(self) -> Iterator[Batch]:
        for rows in self.rows.split(self.batch):
            yield self.sampler(rows, 0, 0)

    def __len__(self) -> int:
        return -(-len(self.rows) // self.batch)
