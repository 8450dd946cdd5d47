"""reinforce-cartpole: a policy balances a pole by its own gradient, from whole episodes and a learned baseline.

w_t = 1 as printed: with γ^t the late steps of a long episode, where balance is lost, would hardly count.
"""

from descend.engine.loop import Loop
from descend.kinds.policy_gradient import MonteCarloPolicy, PlayWhole
from descend.models.actor_critic import ActorCriticConfig
from descend.optim.rules import Adam
from descend.optim.schedules import Linear
from descend.tasks.reinforce import MonteCarlo

RECIPE = MonteCarloPolicy(
    about="REINFORCE with a learned baseline balances a pole (or acts in another --data.env)",
    parameters=9_155,
    takes="1 min",
    model=ActorCriticConfig(width=64, depth=2),
    data=PlayWhole(env="CartPole-v1", valid=60),
    optim=Adam(lr=4e-3, eps=1e-5),
    schedule=Linear(),
    reinforce=MonteCarlo(gamma=0.99, weight="even", baseline="learned"),
    loop=Loop(
        steps=80,
        batch=16,
        eval_every=10,
        save_every=20,
        watch="max return",
        threads=1,
        precision="float32",
        compile="off",
    ),
)
