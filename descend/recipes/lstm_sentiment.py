"""lstm-sentiment: Att-BLSTM tells good opinions from bad ones; your texts: --data.path FILE or FOLDER."""

from descend.data.text.sentiment import Opinions
from descend.engine.loop import Loop
from descend.kinds.sentiment import OpinionRecipe
from descend.models.text_classifier import TextClassifierConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = OpinionRecipe(
    about="a bidirectional LSTM with attention classifies texts (--data.path FILE.tsv, .jsonl or a FOLDER of parts)",
    parameters=268_930,
    takes="1 min",
    model=TextClassifierConfig(embedding=128, width=128, dropout=0.5),
    data=Opinions(),
    optim=AdamW(lr=2e-3, betas=(0.9, 0.98), weight_decay=0.01),
    schedule=Cosine(warmup=20, floor=0.05),
    loop=Loop(steps=300, batch=50, clip=1.0, ema=0.99, eval_every=50, save_every=100, watch="max accuracy"),
)
