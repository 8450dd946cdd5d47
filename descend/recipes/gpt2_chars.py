"""gpt2-chars: character by character at nanoGPT's CPU size: 4 layers, width 128, context 64, batch 12, 2000 steps."""

from descend.data.text.plain import Text
from descend.engine.loop import Loop
from descend.kinds.language import LanguageRecipe
from descend.models.gpt2 import GPT2Config
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = LanguageRecipe(
    about="a character-level GPT-2 of nanoGPT's CPU size (any text: --data.path FILE)",
    parameters=847_616,
    takes="2 min",
    model=GPT2Config(context=64, width=128, depth=4, heads=4, dropout=0.0),
    data=Text(tokenizer="characters"),
    optim=AdamW(lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1),
    schedule=Cosine(warmup=100, floor=0.1),
    loop=Loop(steps=2000, batch=12, clip=1.0, eval_every=250, save_every=500),
)
