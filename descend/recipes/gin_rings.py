"""gin-rings: does a molecule have two rings or more? A graph isomorphism network counts what no atom alone tells."""

from descend.data.graphs.source import GraphSource
from descend.engine.loop import Loop
from descend.kinds.whole_graphs import WholeGraphs
from descend.models.gin import GINConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = WholeGraphs(
    about="a graph isomorphism network tells generated molecules with two rings or more (or --data.path FILE.jsonl)",
    parameters=8_296,
    takes="1 min",
    model=GINConfig(width=32, depth=4, dropout=0.1),
    data=GraphSource(embedded="rings", graphs=2000),
    optim=AdamW(lr=3e-3, weight_decay=0.01),
    schedule=Cosine(warmup=50, floor=0.01),
    loop=Loop(steps=1000, batch=64, eval_every=50, save_every=250, watch="max accuracy"),
)
