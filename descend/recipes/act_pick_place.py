"""act-pick-place: an arm picks a cube and places it in a bin, 16 actions of 7 numbers at a time (MF 30.3)."""

from descend.data.control.episodes import AverageChunks
from descend.engine.loop import Loop
from descend.kinds.imitation import Demonstrations, ImitateByStyle
from descend.models.act import ACTConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = ImitateByStyle(
    about="a robot arm learns pick-and-place from demonstrations, with action chunking (ACT)",
    parameters=535_623,
    takes="3 min",
    model=ACTConfig(chunk=16, latent=16, width=96, heads=4, hidden=192, depth=2),
    data=Demonstrations(task="pick-place", episodes=300),
    optim=AdamW(lr=1e-3, weight_decay=1e-4),
    schedule=Cosine(warmup=100, floor=0.0),
    execute=AverageChunks(m=0.01),
    beta=10.0,
    loop=Loop(
        steps=2500,
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
