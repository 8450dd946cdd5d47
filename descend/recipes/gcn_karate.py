"""gcn-karate: which side did each of 34 members take when a karate club split? Two of them are known."""

from descend.data.graphs.source import NodeSource
from descend.engine.loop import Loop
from descend.kinds.graph_nodes import GraphNodes
from descend.models.gcn import GCNConfig
from descend.optim.rules import AdamL2
from descend.optim.schedules import Constant

RECIPE = GraphNodes(
    about="a graph convolutional network on Zachary's karate club: 34 members, the sides of two are known",
    parameters=576,
    takes="3 s",
    model=GCNConfig(width=16, dropout=0.0),
    data=NodeSource(embedded="karate"),
    optim=AdamL2(lr=0.01, weight_decay=5e-4),
    schedule=Constant(),
    loop=Loop(steps=100, eval_every=10, save_every=50, watch="min loss"),
)
