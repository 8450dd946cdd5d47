"""gat-cora: graph attention names the subject of each paper: how much a paper hears of each citation is learned.

--data.path FOLDER takes Planetoid's files (Cora, CiteSeer, PubMed), nodes.csv with edges.csv, or a graph in .json.
Velickovic et al. (2018) report 83.0 ± 0.7% on Cora's fixed split.
"""

from descend.data.graphs.source import NodeSource
from descend.engine.loop import Loop
from descend.kinds.graph_nodes import GraphNodes
from descend.models.gat import GATConfig
from descend.optim.rules import AdamL2
from descend.optim.schedules import Constant

RECIPE = GraphNodes(
    about="graph attention for Cora (--data.path FOLDER of Planetoid's files; else a planted partition)",
    parameters=1_484,
    takes="40 s",
    model=GATConfig(width=64, heads=8, dropout=0.6, attention_dropout=0.6),
    data=NodeSource(embedded="planted", scale="rows", per_class=20),
    optim=AdamL2(lr=0.005, weight_decay=5e-4),
    schedule=Constant(),
    loop=Loop(steps=300, eval_every=5, save_every=150, watch="max accuracy"),
)
