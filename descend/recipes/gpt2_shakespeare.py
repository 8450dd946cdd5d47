"""gpt2-shakespeare: the best character-level model that 20 minutes on two cores allow on a book of about a million letters."""

from descend.data.text import Text
from descend.models.gpt2 import GPT2Config
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.recipes.kinds.language import LanguageRecipe
from descend.train.protocol import Loop

RECIPE = LanguageRecipe(
    about="a character-level GPT-2 for a book of a million letters in 20 minutes (--data.path FILE)",
    model=GPT2Config(context=128, width=160, depth=6, heads=5, dropout=0.05),
    data=Text(tokenizer="characters"),
    optim=AdamW(lr=3e-3, betas=(0.9, 0.98), weight_decay=0.1),
    schedule=Cosine(warmup=100, floor=0.02),
    loop=Loop(steps=3000, batch=32, clip=1.0, eval_every=250, save_every=500),
)
