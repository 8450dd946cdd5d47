"""ppo-cartpole: an actor and a critic balance a pole, from rollouts of sixteen carts. No download."""

from descend.engine.loop import Loop
from descend.kinds.control import Play, ProximalPolicy
from descend.models.actor_critic import ActorCriticConfig
from descend.optim.rules import Adam
from descend.optim.schedules import Linear
from descend.tasks.ppo import Proximal

RECIPE = ProximalPolicy(
    about="proximal policy optimization balances a pole (or acts in another --data.env)",
    parameters=9_155,
    takes="30 s",
    model=ActorCriticConfig(width=64, depth=2),
    data=Play(env="CartPole-v1", length=64, valid=20),
    optim=Adam(lr=2.5e-3, eps=1e-5),
    schedule=Linear(),
    ppo=Proximal(gamma=0.99, lam=0.95, eps=0.2, epochs=8, minibatches=4),
    loop=Loop(
        steps=60,
        batch=16,
        clip=0.5,
        eval_every=5,
        save_every=20,
        watch="max return",
        threads=1,
        precision="float32",
        compile="off",
    ),
)
