"""gpt2-mixture: a small GPT-2 learns from prose and code by shares, which change from the first stage to the second."""

from descend.data.text.mixed import TextMixture
from descend.engine.loop import Loop
from descend.kinds.mixed_language import MixedLanguageRecipe
from descend.models.gpt2 import GPT2Config
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = MixedLanguageRecipe(
    about="a small GPT-2 on the Python documentation and on modules of its library, by shares, in two stages",
    parameters=2_001_024,
    takes="2 min",
    model=GPT2Config(context=128, width=192, depth=4, heads=6, dropout=0.0),
    data=TextMixture(tokenizer="bpe", vocab=1024, shares=("90,10", "40,60"), until=(0.6,)),
    optim=AdamW(lr=2e-3, betas=(0.9, 0.98), weight_decay=0.1),
    schedule=Cosine(warmup=40, floor=0.05),
    loop=Loop(steps=350, batch=16, clip=1.0, eval_every=50, save_every=100),
)
