"""link-imports: which modules of Python's standard library import each other? Links that were left out are ranked."""

from descend.data.graphs.source import LinkSource
from descend.engine.loop import Loop
from descend.kinds.graph_links import GraphLinks
from descend.models.gcn import GCNConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = GraphLinks(
    about="imports of Python's standard library predicted by a graph convolutional network",
    parameters=9_985,
    takes="10 s",
    model=GCNConfig(width=64, outputs=1, dropout=0.2),
    data=LinkSource(embedded="imports"),
    optim=AdamW(lr=0.01, weight_decay=0.01),
    schedule=Cosine(warmup=10),
    loop=Loop(steps=200, eval_every=10, save_every=100, watch="max auc"),
)
