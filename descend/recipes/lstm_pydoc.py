"""lstm-pydoc: an LSTM learns the language reference that ships with Python, by truncated BPTT. No download."""

from descend.data.text.plain import Text
from descend.engine.loop import Loop
from descend.kinds.recurrent_language import RecurrentLanguageRecipe
from descend.models.lstm_lm import RecurrentLMConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = RecurrentLanguageRecipe(
    about="an LSTM on the Python documentation (or any text: --data.path FILE; --model.cell rnn or gru)",
    parameters=1_051_648,
    takes="2 min",
    model=RecurrentLMConfig(context=64, width=256, depth=1, dropout=0.1, cell="lstm"),
    data=Text(tokenizer="bpe", vocab=1024),
    optim=AdamW(lr=4e-3, betas=(0.9, 0.99), weight_decay=0.01),
    schedule=Cosine(warmup=40, floor=0.05),
    loop=Loop(steps=800, batch=32, clip=1.0, eval_every=100, save_every=200),
)
