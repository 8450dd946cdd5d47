"""bi-encoder-pydoc: summaries of docstrings find their bodies, by vectors."""

from descend.data.text.docstrings import QueryDocuments
from descend.engine.loop import Loop
from descend.kinds.encoder import EncoderSize
from descend.kinds.retrieve import BiEncoderRecipe
from descend.optim.rules import AdamW
from descend.optim.schedules import Linear

RECIPE = BiEncoderRecipe(
    about="a bi-encoder finds documents for queries (--data.path FILE.tsv or .jsonl), from scratch or --model.path",
    parameters=2_659_328,
    takes="12 min",
    model=EncoderSize(context=64, width=256, depth=1, heads=4, hidden=512, dropout=0.1),
    data=QueryDocuments(vocab=8000, longest=64),
    optim=AdamW(lr=2e-3, weight_decay=0.01),
    schedule=Linear(warmup=30, floor=0.0),
    loop=Loop(steps=800, batch=192, clip=1.0, ema=0.98, eval_every=50, save_every=200, watch="max recall@1"),
)
