"""dqn-cartpole: a Q-network balances a pole, from a memory of its own mistakes. No download.

Q overshoots while the target network still climbs to 1/(1 − γ) = 100; a high rate that falls to zero gets through that
phase quickly and settles after it. Only the evaluation shows it, not the training return, as exploration continues.
"""

from descend.data.control.replay import Explore
from descend.engine.loop import Loop
from descend.kinds.control import DeepQ, ReplayMemory
from descend.models.q_network import QNetworkConfig
from descend.optim.rules import Adam
from descend.optim.schedules import Linear
from descend.tasks.dqn import Hard

RECIPE = DeepQ(
    about="deep Q-learning with replay balances a pole (or another --data.env with discrete actions)",
    parameters=17_410,
    takes="1 min",
    model=QNetworkConfig(width=128, depth=2),
    data=ReplayMemory(env="CartPole-v1", copies=4, capacity=50_000, valid=20),
    optim=Adam(lr=3e-3),
    schedule=Linear(),
    explore=Explore(warmup=1000, first=1.0, last=0.05, steps=10_000),
    target=Hard(every=25),
    gamma=0.99,
    loop=Loop(
        steps=12_000,
        batch=64,
        clip=10.0,
        eval_every=500,
        save_every=2000,
        watch="max return",
        threads=1,
        precision="float32",
        compile="off",
    ),
)
