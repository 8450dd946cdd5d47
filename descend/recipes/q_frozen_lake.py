"""q-frozen-lake: a table of action values, learned on slippery ice from steps alone. No download.

Behaviour is random and episodes begin anywhere, so that every pair is tried often; Q-learning is off-policy and learns
the values of the best policy all the same. The rate stays near 0.1 for 300 visits of a pair and then falls as 1/visits.
"""

from descend.data.control.replay import Explore
from descend.engine.loop import Loop
from descend.kinds.tabular import Tables, TabularQ
from descend.models.q_table import QTableConfig
from descend.ops.decisions.rates import StepSize
from descend.optim.rules import SGD
from descend.optim.schedules import Constant

RECIPE = TabularQ(
    about="tabular Q-learning crosses a frozen lake (or CliffWalking-v1, Taxi-v4, or a process in a file: --data.path)",
    parameters=64,
    takes="10 s",
    model=QTableConfig(),
    data=Tables(env="FrozenLake-v1", start="anywhere"),
    optim=SGD(lr=1.0, momentum=0.0),
    schedule=Constant(),
    explore=Explore(warmup=0, first=1.0, last=1.0, steps=1),
    rate=StepSize(first=0.1, hold=300, power=1.0),
    gamma=0.99,
    loop=Loop(
        steps=6000,
        batch=1024,
        eval_every=500,
        save_every=2000,
        watch="min distance",
        threads=1,
        precision="float32",
        compile="off",
    ),
)
