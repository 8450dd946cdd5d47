"""gcn-imports: what is a module of Python's standard library about? Told by who imports whom."""

from descend.data.graphs.source import NodeSource
from descend.engine.loop import Loop
from descend.kinds.graph_nodes import GraphNodes
from descend.models.gcn import GCNConfig
from descend.optim.rules import AdamL2
from descend.optim.schedules import Constant

RECIPE = GraphNodes(
    about="a graph convolutional network on the imports of Python's standard library: packages told by their imports",
    parameters=2_368,
    takes="10 s",
    model=GCNConfig(width=64, dropout=0.5),
    data=NodeSource(embedded="imports"),
    optim=AdamL2(lr=0.01, weight_decay=5e-4),
    schedule=Constant(),
    loop=Loop(steps=200, eval_every=10, save_every=100, watch="max accuracy"),
)
