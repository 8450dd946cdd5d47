"""q-cliff: a table of action values for the walk along a cliff, where the best path earns exactly −13. No download.

Nothing is by chance here, so the rate is 1 and never falls: each step replaces what was known about its pair.
"""

from descend.data.control.replay import Explore
from descend.engine.loop import Loop
from descend.kinds.tabular import Tables, TabularQ
from descend.models.q_table import QTableConfig
from descend.ops.decisions.rates import StepSize
from descend.optim.rules import SGD
from descend.optim.schedules import Constant

RECIPE = TabularQ(
    about="tabular Q-learning finds the best path along a cliff (or in another --data.env or --data.path)",
    parameters=192,
    takes="3 s",
    model=QTableConfig(),
    data=Tables(env="CliffWalking-v1"),
    optim=SGD(lr=1.0, momentum=0.0),
    schedule=Constant(),
    explore=Explore(warmup=0, first=1.0, last=0.1, steps=20_000),
    rate=StepSize(first=1.0, power=0.0),
    gamma=1.0,
    loop=Loop(
        steps=1000,
        batch=64,
        eval_every=100,
        save_every=500,
        watch="max return",
        threads=1,
        precision="float32",
        compile="off",
    ),
)
