"""Some steps by sampled neighbours on a graph with a million edges, and the most memory that this process ever had.

python -m tests.kinds.large_graph        prints edges, loss before and after, and gigabytes
"""

from __future__ import annotations

import resource

import torch

from descend.data.graphs.source import SampledNodeSource
from descend.engine.distributed import World
from descend.engine.loop import Loop
from descend.engine.training import Training
from descend.kinds.graph_nodes import SampledNodes
from descend.models.graphsage import GraphSAGEConfig
from descend.optim.rules import Adam

NODES, STEPS = 260_000, 12  # the planted partition has about four edges for each node


def main() -> None:
    torch.set_num_threads(1)
    recipe = SampledNodes(
        model=GraphSAGEConfig(width=32, dropout=0.0),
        data=SampledNodeSource(embedded="planted", size=NODES, sample=(10, 5)),
        optim=Adam(lr=0.01),
        loop=Loop(steps=STEPS, batch=256),
    )
    training = Training(recipe.build(), recipe.loop, recipe.schedule, World())
    losses = [training.advance()["loss"] for _ in range(STEPS)]
    edges = training.parts.facts["edges"].split()[0].replace(",", "")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(edges, losses[0], losses[-1], memory)


if __name__ == "__main__":
    main()
