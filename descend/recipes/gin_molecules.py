"""gin-molecules: a number for each molecule, here the sum of what its atoms, bonds and rings contribute.

--data.path takes a .csv with a column of SMILES and one number (the extra `molecules`), or graphs in .jsonl.
"""

from descend.data.graphs.source import GraphSource
from descend.engine.loop import Loop
from descend.kinds.whole_graphs import WholeGraphs
from descend.models.gin import GINConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = WholeGraphs(
    about="a graph isomorphism network regresses a property of generated molecules (or --data.path FILE of SMILES)",
    parameters=8_164,
    takes="1 min",
    model=GINConfig(width=32, depth=4, outputs=1, dropout=0.0),
    data=GraphSource(embedded="molecules", graphs=2000),
    optim=AdamW(lr=3e-3, weight_decay=0.01),
    schedule=Cosine(warmup=50, floor=0.01),
    loop=Loop(steps=1000, batch=64, eval_every=50, save_every=250, watch="min loss"),
)
