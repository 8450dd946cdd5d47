"""rlhf-opinions: the whole chain in one run, from plain text to an aligned model. No download, minutes on a laptop."""

from descend.data.text.preference_source import Preferences
from descend.engine.loop import Loop
from descend.kinds.align_language import WholeChain
from descend.models.gpt2 import GPT2Config
from descend.optim.rules import AdamW
from descend.optim.stages import InStages
from descend.tasks.language_policy import ProximalTokens

RECIPE = WholeChain(
    about="pre-training, instruction tuning, a reward model and PPO on generated opinions (or your own texts and data)",
    parameters=127_936,
    takes="4 min",
    model=GPT2Config(context=48, width=64, depth=2, heads=4, dropout=0.0),
    data=Preferences(noise=0.5),
    optim=AdamW(lr=3e-4, betas=(0.9, 0.95), weight_decay=0.0),
    before=AdamW(lr=3e-3, betas=(0.9, 0.98)),
    schedule=InStages(shares=(0.1, 0.3, 0.4, 0.2)),
    ppo=ProximalTokens(beta=0.3),
    loop=Loop(steps=900, batch=32, clip=1.0, eval_every=100, save_every=100, watch="max objective"),
)
