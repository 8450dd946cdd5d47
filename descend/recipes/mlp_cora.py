"""mlp-cora: the control without a graph: a multilayer perceptron sees the words of each paper and no citation.

--data.path FOLDER takes Planetoid's files (Cora, CiteSeer, PubMed), nodes.csv with edges.csv, or a graph in .json.
"""

from descend.data.graphs.source import NodeSource
from descend.engine.loop import Loop
from descend.kinds.graph_nodes import GraphNodes
from descend.models.mlp import MLPConfig
from descend.optim.rules import AdamL2
from descend.optim.schedules import Constant

RECIPE = GraphNodes(
    about="the control for Cora: an MLP on the nodes alone (--data.path FOLDER; else a planted partition)",
    parameters=1_348,
    takes="10 s",
    model=MLPConfig(hidden=(64,)),
    data=NodeSource(embedded="planted", scale="rows", per_class=20),
    optim=AdamL2(lr=0.01, weight_decay=5e-3),
    schedule=Constant(),
    loop=Loop(steps=200, eval_every=5, save_every=100, watch="max accuracy"),
)
