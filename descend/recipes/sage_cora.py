"""sage-cora: GraphSAGE names the subject of each paper: the mean of its citations beside its own words.

--data.path FOLDER takes Planetoid's files (Cora, CiteSeer, PubMed), nodes.csv with edges.csv, or a graph in .json.
What is learned belongs to no node, so the run predicts for other graphs with the same attributes.
"""

from descend.data.graphs.source import NodeSource
from descend.engine.loop import Loop
from descend.kinds.graph_nodes import GraphNodes
from descend.models.graphsage import GraphSAGEConfig
from descend.optim.rules import AdamL2
from descend.optim.schedules import Constant

RECIPE = GraphNodes(
    about="GraphSAGE for Cora (--data.path FOLDER of Planetoid's files; else a planted partition)",
    parameters=2_628,
    takes="20 s",
    model=GraphSAGEConfig(width=64, dropout=0.5),
    data=NodeSource(embedded="planted", scale="rows", per_class=20),
    optim=AdamL2(lr=0.01, weight_decay=5e-4),
    schedule=Constant(),
    loop=Loop(steps=150, eval_every=5, save_every=75, watch="max accuracy"),
)
