"""gru-chars: a GRU learns the Python documentation character by character, by truncated BPTT."""

from descend.data.text.plain import Text
from descend.engine.loop import Loop
from descend.kinds.recurrent_language import RecurrentLanguageRecipe
from descend.models.lstm_lm import RecurrentLMConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = RecurrentLanguageRecipe(
    about="a character-level GRU (any text: --data.path FILE)",
    parameters=579_432,
    takes="2 min",
    model=RecurrentLMConfig(context=64, width=256, depth=1, cell="gru"),
    data=Text(tokenizer="characters"),
    optim=AdamW(lr=4e-3, betas=(0.9, 0.99), weight_decay=0.01),
    schedule=Cosine(warmup=40, floor=0.05),
    loop=Loop(steps=1000, batch=32, clip=1.0, eval_every=100, save_every=250),
)
