"""lstm-attention-translate: an LSTM that looks back at the whole source at every word (Bahdanau 2014)."""

from descend.data.text.text_to_text import TextPairs
from descend.engine.loop import Loop
from descend.kinds.pairs import PairsRecipe
from descend.models.seq2seq import Seq2SeqConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = PairsRecipe(
    about="an LSTM encoder-decoder with attention on number words (or parallel text: --data.path FOLDER)",
    parameters=639_651,
    takes="2 min",
    model=Seq2SeqConfig(width=128, depth=1, dropout=0.1, context="previous"),
    data=TextPairs(tasks=("words",), count=8000),
    optim=AdamW(lr=2e-3, betas=(0.9, 0.98), weight_decay=0.0),
    schedule=Cosine(warmup=50, floor=0.02),
    loop=Loop(steps=600, batch=64, clip=1.0, eval_every=100, save_every=200, watch="min loss"),
)
