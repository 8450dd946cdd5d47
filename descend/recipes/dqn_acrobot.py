"""dqn-acrobot: a Q-network swings a double pendulum up; every step costs 1 until the tip is high. No download."""

from descend.data.control.replay import Explore
from descend.engine.loop import Loop
from descend.kinds.control import DeepQ, ReplayMemory
from descend.models.q_network import QNetworkConfig
from descend.optim.rules import Adam
from descend.optim.schedules import Linear
from descend.tasks.dqn import Hard

RECIPE = DeepQ(
    about="deep Q-learning swings a double pendulum up (or acts in another --data.env with discrete actions)",
    parameters=17_795,
    takes="1 min",
    model=QNetworkConfig(width=128, depth=2),
    data=ReplayMemory(env="Acrobot-v1", copies=4, capacity=50_000, valid=20),
    optim=Adam(lr=1e-3),
    schedule=Linear(),
    explore=Explore(warmup=1000, first=1.0, last=0.05, steps=12_000),
    target=Hard(every=100),
    gamma=0.99,
    loop=Loop(
        steps=16_000,
        batch=128,
        clip=10.0,
        eval_every=1000,
        save_every=4000,
        watch="max return",
        threads=1,
        precision="float32",
        compile="off",
    ),
)
