"""gpt2-shakespeare: the best character-level model of a book that 20 minutes on two cores allow."""

from descend.data.text.plain import Text
from descend.engine.loop import Loop
from descend.kinds.language import LanguageRecipe
from descend.models.gpt2 import GPT2Config
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = LanguageRecipe(
    about="a character-level GPT-2 for a book of a million characters (--data.path FILE)",
    parameters=1_252_352,
    takes="15 min",
    model=GPT2Config(context=128, width=128, depth=6, heads=4, dropout=0.0),
    data=Text(tokenizer="characters"),
    optim=AdamW(lr=3e-3, betas=(0.9, 0.99), weight_decay=0.1),
    schedule=Cosine(warmup=200, floor=0.02),
    loop=Loop(steps=6000, batch=16, clip=1.0, eval_every=500, save_every=500),
)
