"""diffusion-policy-pick-place: the task of act-pick-place, with chunks that are drawn from noise."""

from descend.data.control.episodes import RunChunks
from descend.engine.loop import Loop
from descend.kinds.imitation import Demonstrations, DiffuseActions
from descend.models.diffusion_policy import DiffusionPolicyConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = DiffuseActions(
    about="a robot arm learns pick-and-place from demonstrations, with Diffusion Policy",
    parameters=244_135,
    takes="5 min",
    model=DiffusionPolicyConfig(chunk=16, width=96, heads=4, hidden=192, depth=3),
    data=Demonstrations(task="pick-place", episodes=300),
    optim=AdamW(lr=1e-3, weight_decay=1e-4),
    schedule=Cosine(warmup=100, floor=0.0),
    execute=RunChunks(steps=8),
    loop=Loop(
        steps=4000,
        batch=64,
        clip=1.0,
        ema=0.995,
        eval_every=1000,
        save_every=1000,
        watch="max success",
        threads=1,
        precision="float32",
        compile="off",
    ),
)
