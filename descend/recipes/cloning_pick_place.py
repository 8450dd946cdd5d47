"""cloning-pick-place: plain behaviour cloning, a perceptron from the state to the next actions."""

from descend.data.control.episodes import RunChunks
from descend.engine.loop import Loop
from descend.kinds.imitation import Demonstrations, RegressActions
from descend.models.cloning_policy import CloningPolicyConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = RegressActions(
    about="a robot arm learns pick-and-place from demonstrations, by regression",
    parameters=163_184,
    takes="1 min",
    model=CloningPolicyConfig(chunk=16, width=256, depth=3),
    data=Demonstrations(task="pick-place", episodes=300),
    optim=AdamW(lr=1e-3, weight_decay=1e-4),
    schedule=Cosine(warmup=100, floor=0.0),
    execute=RunChunks(steps=8),
    loop=Loop(
        steps=4000,
        batch=64,
        clip=1.0,
        eval_every=500,
        save_every=1000,
        watch="max success",
        threads=1,
        precision="float32",
        compile="off",
    ),
)
