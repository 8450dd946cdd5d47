"""gcn-cora: a graph convolutional network names the subject of each paper from its words and citations.

--data.path FOLDER takes Planetoid's files (Cora, CiteSeer, PubMed), nodes.csv with edges.csv, or a graph in .json.
Kipf and Welling (2017) report 81.5% on Cora's fixed split.
"""

from descend.data.graphs.source import NodeSource
from descend.engine.loop import Loop
from descend.kinds.graph_nodes import GraphNodes
from descend.models.gcn import GCNConfig
from descend.optim.rules import AdamL2
from descend.optim.schedules import Constant

RECIPE = GraphNodes(
    about="a graph convolutional network for Cora (--data.path FOLDER of Planetoid's files; else a planted partition)",
    parameters=1_280,
    takes="10 s",
    model=GCNConfig(width=64, dropout=0.5),
    data=NodeSource(embedded="planted", scale="rows", per_class=20),
    optim=AdamL2(lr=0.01, weight_decay=5e-4),
    schedule=Constant(),
    loop=Loop(steps=200, eval_every=10, save_every=100, watch="min loss"),
)
