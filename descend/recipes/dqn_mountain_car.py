"""dqn-mountain-car: a Q-network learns to swing a car out of a valley. No download, and no shaped reward.

Every step costs 1 until the goal, which single random actions never reach: random actions are held for 25 steps, about
half a swing. What is learned at the goal travels back one step with each copy of the target network, so the copies are
frequent. The reward is the environment's own.
"""

from descend.data.control.replay import Explore
from descend.engine.loop import Loop
from descend.kinds.control import DeepQ, ReplayMemory
from descend.models.q_network import QNetworkConfig
from descend.optim.rules import Adam
from descend.optim.schedules import Linear
from descend.tasks.dqn import Hard

RECIPE = DeepQ(
    about="deep Q-learning swings a car out of a valley (or acts in another --data.env with discrete actions)",
    parameters=17_283,
    takes="1 min",
    model=QNetworkConfig(width=128, depth=2),
    data=ReplayMemory(env="MountainCar-v0", copies=4, capacity=50_000, valid=20),
    optim=Adam(lr=2e-3),
    schedule=Linear(),
    explore=Explore(warmup=1000, first=1.0, last=0.05, steps=50_000, hold=25),
    target=Hard(every=30),
    gamma=0.99,
    loop=Loop(
        steps=20_000,
        batch=64,
        clip=10.0,
        eval_every=1000,
        save_every=5000,
        watch="max return",
        threads=1,
        precision="float32",
        compile="off",
    ),
)
