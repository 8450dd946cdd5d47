"""mixtral-pydoc: a small Mixtral, eight experts of which a token meets two, learns the Python language reference."""

from descend.data.text.plain import Text
from descend.engine.loop import Loop
from descend.kinds.experts_language import ExpertsLanguageRecipe
from descend.models.mixtral import MixtralConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = ExpertsLanguageRecipe(
    about="a small Mixtral on the Python documentation (or any text: --data.path FILE)",
    parameters=3_609_728,
    takes="2 min",
    model=MixtralConfig(context=128, width=128, depth=4, heads=4, kv_heads=2, hidden=256),
    data=Text(tokenizer="bpe", vocab=1024),
    optim=AdamW(lr=3e-3, betas=(0.9, 0.98), weight_decay=0.1),
    schedule=Cosine(warmup=40, floor=0.05),
    loop=Loop(steps=300, batch=16, clip=1.0, eval_every=50, save_every=100),
)
