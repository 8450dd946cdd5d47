"""ppo-pendulum: the same towers swing a pendulum up and hold it; an action is a torque, a number in [−2, 2].

Gradients are not clipped: returns of −1,000 make the critic's so large that little would be left of the actor's."""

from descend.engine.loop import Loop
from descend.kinds.control import Play, ProximalPolicy
from descend.models.actor_critic import ActorCriticConfig
from descend.optim.rules import Adam
from descend.optim.schedules import Linear
from descend.tasks.ppo import Proximal

RECIPE = ProximalPolicy(
    about="proximal policy optimization with continuous actions swings a pendulum up",
    parameters=8_963,
    takes="2 min",
    model=ActorCriticConfig(width=64, depth=2),
    data=Play(env="Pendulum-v1", length=64, valid=60),
    optim=Adam(lr=1e-3, eps=1e-5),
    schedule=Linear(),
    ppo=Proximal(gamma=0.95, lam=0.95, eps=0.2, epochs=10, minibatches=8),
    loop=Loop(
        steps=400,
        batch=16,
        eval_every=20,
        save_every=50,
        watch="max return",
        threads=1,
        precision="float32",
        compile="off",
    ),
)
