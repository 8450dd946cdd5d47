"""reward-opinions: a reward model learns which answers people prefer. No download, minutes on a laptop."""

from descend.engine.loop import Loop
from descend.kinds.align_language import RewardModel
from descend.models.gpt2 import GPT2Config
from descend.optim.rules import AdamW
from descend.optim.stages import InStages

RECIPE = RewardModel(
    about="a reward model on generated opinions (or prompt, chosen and rejected: --data.path FILE.jsonl)",
    parameters=128_000,
    takes="2 min",
    model=GPT2Config(context=48, width=64, depth=2, heads=4, dropout=0.0),
    optim=AdamW(lr=3e-3, betas=(0.9, 0.98)),
    before=AdamW(lr=3e-3, betas=(0.9, 0.98)),
    schedule=InStages(shares=(0.3, 0.7)),
    loop=Loop(steps=900, batch=32, clip=1.0, eval_every=100, save_every=100, watch="max accuracy"),
)
