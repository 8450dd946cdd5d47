"""a2c-cartpole: an actor and a critic balance a pole, one step on every eight moves of sixteen carts. No download."""

from descend.engine.loop import Loop
from descend.kinds.control import Play
from descend.kinds.policy_gradient import ActorCriticPolicy
from descend.models.actor_critic import ActorCriticConfig
from descend.optim.rules import Adam
from descend.optim.schedules import Linear
from descend.tasks.actor_critic import Advantage

RECIPE = ActorCriticPolicy(
    about="advantage actor-critic balances a pole (or acts in another --data.env)",
    parameters=9_155,
    takes="1 min",
    model=ActorCriticConfig(width=64, depth=2),
    data=Play(env="CartPole-v1", length=8, valid=40),
    optim=Adam(lr=2e-3, eps=1e-5),
    schedule=Linear(),
    a2c=Advantage(gamma=0.99, n=8, value=0.5, entropy=0.0),
    loop=Loop(
        steps=2000,
        batch=16,
        clip=0.5,
        eval_every=250,
        save_every=1000,
        watch="max return",
        threads=1,
        precision="float32",
        compile="off",
    ),
)
