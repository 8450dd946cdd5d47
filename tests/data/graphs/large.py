"""Training by sampled neighbours on a graph with a million edges, in a process of its own: what it learns and takes.

python -m tests.data.graphs.large      prints edges, accuracy before and after, seconds a step, the peak in bytes
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy

from descend.data.graphs.attributed import link
from descend.data.graphs.sampling import NeighbourBatches, NeighbourSampler, NeighboursInOrder
from descend.data.toys.partition import plant_partition
from descend.models.graphsage import GraphSAGEConfig, GraphSAGEForNodes
from descend.ops.graph.batches import read_graph

NODES, DEGREE, BATCH, STEPS = 100_000, 20.01, 128, 40


def measure() -> dict[str, float]:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x, pairs, y = plant_partition(NODES, degree=DEGREE)
    graph = link(x, pairs)
    sampler = NeighbourSampler(graph, y, (15, 5))
    every = torch.arange(NODES)
    held, taught = every[every % 401 == 0], every[every % 401 > 0]
    model = GraphSAGEForNodes(GraphSAGEConfig(inputs=x.shape[1], width=32, outputs=4, dropout=0.0))
    optim = torch.optim.Adam(model.parameters(), lr=0.01)
    stream = NeighbourBatches(sampler, taught, BATCH)

    def logits(batch: dict[str, torch.Tensor]) -> torch.Tensor:
        sizes = torch.bincount(batch["nodes_owner"])
        found: torch.Tensor = model(read_graph(batch))[sizes.cumsum(0) - sizes]
        return found

    def accuracy() -> float:
        with torch.no_grad():
            right = [logits(b).argmax(dim=1) == b["y"] for b in NeighboursInOrder(sampler, held)]
        return float(torch.cat(right).double().mean())

    before, start = accuracy(), time.perf_counter()
    for _ in range(STEPS):
        batch = next(stream)
        optim.zero_grad()
        cross_entropy(logits(batch), batch["y"]).backward()  # type: ignore[no-untyped-call]
        optim.step()
    step = (time.perf_counter() - start) / STEPS
    # Not getrusage, which counts what the process had that started this one.
    peak = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) * 1024
    return {"edges": len(pairs), "before": before, "after": accuracy(), "step": step, "peak": peak}


if __name__ == "__main__":
    print(json.dumps(measure()))
