"""sage-sampled: GraphSAGE for graphs that are too large to be seen at once, by a sample of each node's neighbours."""

from descend.data.graphs.source import SampledNodeSource
from descend.engine.loop import Loop
from descend.kinds.graph_nodes import SampledNodes
from descend.models.graphsage import GraphSAGEConfig
from descend.optim.rules import Adam
from descend.optim.schedules import Cosine

RECIPE = SampledNodes(
    about="GraphSAGE by sampled neighbours on a planted partition of 10,000 nodes (or --data.path FOLDER)",
    parameters=2_628,
    takes="1 min",
    model=GraphSAGEConfig(width=64, depth=2, dropout=0.2),
    data=SampledNodeSource(embedded="planted", size=10_000, sample=(10, 5)),
    optim=Adam(lr=3e-3),
    schedule=Cosine(warmup=20),
    loop=Loop(steps=300, batch=256, eval_every=50, save_every=100, watch="max accuracy"),
)
