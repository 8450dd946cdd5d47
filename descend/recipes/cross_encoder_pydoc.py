"""cross-encoder-pydoc: query and docstring are read together, to rank what keyword search found."""

from descend.data.text.docstrings import QueryDocuments
from descend.engine.loop import Loop
from descend.kinds.encoder import EncoderSize
from descend.kinds.retrieve import CrossEncoderRecipe
from descend.optim.rules import AdamW
from descend.optim.schedules import Linear

RECIPE = CrossEncoderRecipe(
    about="a cross-encoder ranks what keyword search found (--data.path FILE.tsv or .jsonl); --model.path: start from",
    parameters=2_667_777,
    takes="12 min",
    model=EncoderSize(context=96, width=256, depth=1, heads=4, hidden=512, dropout=0.1),
    data=QueryDocuments(vocab=8000, longest=96, also=""),
    optim=AdamW(lr=5e-4, weight_decay=0.01),
    schedule=Linear(warmup=30, floor=0.0),
    loop=Loop(steps=500, batch=16, clip=1.0, eval_every=50, save_every=200, watch="max recall@1"),
)
