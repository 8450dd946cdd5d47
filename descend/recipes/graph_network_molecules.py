"""graph-network-molecules: a number for each molecule, from its atoms and its bonds: edges are updated as nodes are.

--data.path takes a .csv with a column of SMILES and one number (the extra `molecules`), or graphs in .jsonl.
"""

from descend.data.graphs.source import GraphSource
from descend.engine.loop import Loop
from descend.kinds.whole_graphs import WholeGraphs
from descend.models.graph_network import GraphNetworkConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = WholeGraphs(
    about="a graph network with edges and a context regresses a property of generated molecules (or --data.path FILE)",
    parameters=42_433,
    takes="2 min",
    model=GraphNetworkConfig(width=32, depth=3, outputs=1),
    data=GraphSource(embedded="molecules", graphs=2000),
    optim=AdamW(lr=3e-3, weight_decay=0.01),
    schedule=Cosine(warmup=50, floor=0.01),
    loop=Loop(steps=600, batch=64, eval_every=50, save_every=200, watch="min loss"),
)
