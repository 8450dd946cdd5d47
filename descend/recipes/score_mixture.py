"""score-mixture: scores of two unequal Gaussians at sixteen noise levels; annealed Langevin dynamics finds the shares."""

from descend.engine.loop import Loop
from descend.kinds.scores import ScorePoints, TwoGaussians
from descend.models.score_network import ScoreNetworkConfig
from descend.optim.rules import Adam
from descend.optim.schedules import Cosine

RECIPE = ScorePoints(
    about="a noise-conditional score network of two unequal Gaussians, sampled by annealed Langevin dynamics",
    parameters=9_666,
    takes="1 min",
    model=ScoreNetworkConfig(),
    data=TwoGaussians(),
    optim=Adam(lr=2e-3),
    schedule=Cosine(warmup=100),
    loop=Loop(steps=4000, batch=512, ema=0.995, eval_every=4000, save_every=1000, watch="min loss"),
)
