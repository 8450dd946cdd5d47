"""trpo-cartpole: a policy balances a pole by natural-gradient steps, each inside a KL divergence of δ. No download."""

from descend.engine.loop import Loop
from descend.kinds.control import Play
from descend.kinds.policy_gradient import TrustRegionPolicy
from descend.models.actor_critic import ActorCriticConfig
from descend.optim.rules import Adam
from descend.optim.schedules import Constant
from descend.optim.trust_region import TrustRegion
from descend.tasks.trpo import Trusted

RECIPE = TrustRegionPolicy(
    about="trust-region policy optimization balances a pole (or acts in another --data.env)",
    parameters=9_155,
    takes="30 s",
    model=ActorCriticConfig(width=64, depth=2),
    data=Play(env="CartPole-v1", length=64, valid=40),
    optim=TrustRegion(lr=0.02, damping=0.1, inner=10),
    critic=Adam(lr=2.5e-3, eps=1e-5),
    schedule=Constant(),
    trpo=Trusted(gamma=0.99, lam=0.95, epochs=8, minibatches=4),
    loop=Loop(
        steps=60,
        batch=16,
        eval_every=10,
        save_every=20,
        watch="max return",
        threads=1,
        precision="float32",
        compile="off",
    ),
)
