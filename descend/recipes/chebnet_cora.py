"""chebnet-cora: Chebyshev filters of the citation graph's spectrum name the subject of each paper.

--data.path FOLDER takes Planetoid's files (Cora, CiteSeer, PubMed), nodes.csv with edges.csv, or a graph in .json.
Kipf and Welling (2017) report 81.2% for it on Cora's fixed split.
"""

from descend.data.graphs.source import NodeSource
from descend.engine.loop import Loop
from descend.kinds.graph_nodes import GraphNodes
from descend.models.chebnet import ChebNetConfig
from descend.optim.rules import AdamL2
from descend.optim.schedules import Constant

RECIPE = GraphNodes(
    about="ChebNet for Cora (--data.path FOLDER of Planetoid's files; else a planted partition)",
    parameters=980,
    takes="20 s",
    model=ChebNetConfig(width=16, degree=2, dropout=0.5),
    data=NodeSource(embedded="planted", scale="rows", per_class=20),
    optim=AdamL2(lr=0.01, weight_decay=5e-4),
    schedule=Constant(),
    loop=Loop(steps=200, eval_every=5, save_every=100, watch="max accuracy"),
)
