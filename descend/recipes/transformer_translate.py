"""transformer-translate: the Transformer of 2017 translates, by default numbers into words."""

from descend.data.text.text_to_text import TextPairs
from descend.engine.loop import Loop
from descend.kinds.pairs import PairsRecipe
from descend.models.transformer import TransformerConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = PairsRecipe(
    about="the Transformer on number words (or parallel text: --data.path FOLDER --data.tokenizer bpe)",
    parameters=962_944,
    takes="2 min",
    model=TransformerConfig(width=128, depth=2, heads=4, hidden=512, dropout=0.1),
    data=TextPairs(tasks=("words",), count=8000),
    smoothing=0.1,
    optim=AdamW(lr=1e-3, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0),
    schedule=Cosine(warmup=200, floor=0.02),
    loop=Loop(steps=800, batch=64, clip=0.0, eval_every=100, save_every=400, watch="min loss"),
)
