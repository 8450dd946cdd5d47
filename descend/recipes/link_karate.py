"""link-karate: which friendships of a karate club are missing? A graph convolutional network ranks pairs of members."""

from descend.data.graphs.source import LinkSource
from descend.engine.loop import Loop
from descend.kinds.graph_links import GraphLinks
from descend.models.gcn import GCNConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = GraphLinks(
    about="links of Zachary's karate club predicted by a graph convolutional network (or --data.path FILE of edges)",
    parameters=3_201,
    takes="5 s",
    model=GCNConfig(width=32, outputs=1, dropout=0.2),
    data=LinkSource(embedded="karate", valid=0.1, test=0.15),
    optim=AdamW(lr=0.01, weight_decay=0.01),
    schedule=Cosine(warmup=10),
    loop=Loop(steps=200, eval_every=10, save_every=100, watch="max auc"),
)
