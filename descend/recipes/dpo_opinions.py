"""dpo-opinions: a language model learns from pairs of answers, without a reward model. No download, minutes."""

from descend.data.text.preference_source import Preferences
from descend.engine.loop import Loop
from descend.kinds.align_language import PreferDirectly
from descend.models.gpt2 import GPT2Config
from descend.optim.rules import AdamW
from descend.optim.stages import InStages

RECIPE = PreferDirectly(
    about="DPO on generated opinions (or prompt, chosen and rejected: --data.path FILE.jsonl)",
    parameters=127_936,
    takes="2 min",
    model=GPT2Config(context=48, width=64, depth=2, heads=4, dropout=0.0),
    data=Preferences(noise=0.5),
    optim=AdamW(lr=3e-4, betas=(0.9, 0.98)),
    before=AdamW(lr=3e-3, betas=(0.9, 0.98)),
    schedule=InStages(shares=(0.5, 0.5)),
    beta=0.5,
    anchor=1.0,
    loop=Loop(steps=600, batch=32, clip=1.0, eval_every=100, save_every=100, watch="max accuracy"),
)
