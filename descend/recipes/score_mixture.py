"""score-mixture: scores of two unequal Gaussians at twelve noise levels; annealing finds their shares"""

from descend.engine.loop import Loop
from descend.kinds.scores import ScorePoints, TwoGaussians
from descend.models.score_network import ScoreNetworkConfig
from descend.optim.rules import Adam
from descend.optim.schedules import Cosine

RECIPE = ScorePoints(
    about="a noise-conditional score network of two unequal Gaussians, sampled by annealed Langevin dynamics",
    parameters=9_410,
    takes="1 min",
    model=ScoreNetworkConfig(),
    data=TwoGaussians(),
    optim=Adam(lr=4e-3),
    schedule=Cosine(warmup=50, floor=0.0),
    loop=Loop(steps=5000, batch=2048, ema=0.99, eval_every=5000, save_every=1000, watch="min loss"),
)
