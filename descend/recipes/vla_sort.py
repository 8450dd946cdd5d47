"""vla-sort: an arm sees two cubes and two bins, is told in words which cube goes where, and does it."""

from descend.data.control.episodes import RunChunks
from descend.engine.loop import Loop
from descend.kinds.imitation import Demonstrations, FollowInstructions
from descend.models.vla_policy import VLAConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = FollowInstructions(
    about="a robot arm is told in words which cube to put in which bin, and sees them (vision-language-action)",
    parameters=504_823,
    takes="15 min",
    model=VLAConfig(chunk=16, width=96, heads=4, hidden=192, depth=4),
    data=Demonstrations(task="sort", episodes=2000, pace=1, height=48, width=64, valid=50, test=200),
    optim=AdamW(lr=1e-3, weight_decay=1e-4),
    schedule=Cosine(warmup=200, floor=0.0),
    execute=RunChunks(steps=4),
    loop=Loop(
        steps=4000,
        batch=64,
        clip=1.0,
        eval_every=1000,
        save_every=500,
        watch="max success",
        threads=1,
        precision="float32",
        compile="off",
    ),
)
