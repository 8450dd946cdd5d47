"""ppo-opinions: a language model writes what a reward model likes, near its reference. No download, minutes."""

from descend.data.text.preference_source import Preferences
from descend.engine.loop import Loop
from descend.kinds.align_language import AlignPolicy
from descend.models.gpt2 import GPT2Config
from descend.optim.rules import AdamW
from descend.optim.stages import InStages
from descend.tasks.language_policy import ProximalTokens

RECIPE = AlignPolicy(
    about="instruction tuning, a reward model and PPO on generated opinions (or your own: --data.path FILE.jsonl)",
    parameters=127_936,
    takes="3 min",
    model=GPT2Config(context=48, width=64, depth=2, heads=4, dropout=0.0),
    data=Preferences(noise=0.5),
    optim=AdamW(lr=3e-4, betas=(0.9, 0.95), weight_decay=0.0),
    before=AdamW(lr=3e-3, betas=(0.9, 0.98)),
    schedule=InStages(shares=(0.35, 0.45, 0.2)),
    ppo=ProximalTokens(beta=0.3),
    loop=Loop(steps=900, batch=32, clip=1.0, eval_every=100, save_every=100, watch="max objective"),
)
