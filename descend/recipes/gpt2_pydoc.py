"""gpt2-pydoc: a small GPT-2 learns the language reference that ships with Python. No download, minutes on a laptop."""

from descend.data.text.plain import Text
from descend.engine.loop import Loop
from descend.kinds.language import LanguageRecipe
from descend.models.gpt2 import GPT2Config
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = LanguageRecipe(
    about="a small GPT-2 on the Python documentation (or any text: --data.path FILE)",
    parameters=2_001_024,
    takes="2 min",
    model=GPT2Config(context=128, width=192, depth=4, heads=6, dropout=0.0),
    data=Text(tokenizer="bpe", vocab=1024),
    optim=AdamW(lr=2e-3, betas=(0.9, 0.98), weight_decay=0.1),
    schedule=Cosine(warmup=40, floor=0.05),
    loop=Loop(steps=350, batch=16, clip=1.0, eval_every=50, save_every=100),
)
