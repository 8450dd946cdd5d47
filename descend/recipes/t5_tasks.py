"""t5-tasks: one small T5 learns three tasks by their prefixes: numbers to words, dates to ISO, sums."""

from descend.data.text.text_to_text import TextPairs
from descend.engine.loop import Loop
from descend.kinds.pairs import PairsRecipe
from descend.models.t5 import T5Config
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = PairsRecipe(
    about="a small T5 on text-to-text tasks: number words, dates, sums (or your own pairs: --data.path FILE)",
    parameters=827_520,
    takes="3 min",
    model=T5Config(
        width=128, depth=2, decoder_depth=2, heads=4, head_size=32, hidden=256, feed_forward="gated-gelu", dropout=0.0
    ),
    data=TextPairs(),
    optim=AdamW(lr=1.5e-3, betas=(0.9, 0.98), weight_decay=0.01),
    schedule=Cosine(warmup=100, floor=0.02),
    loop=Loop(steps=2000, batch=32, clip=1.0, eval_every=250, save_every=500, watch="max exact"),
)
