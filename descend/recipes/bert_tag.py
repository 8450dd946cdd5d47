"""bert-tag: keyword, name, string or comment? Every word of Python source gets its kind from the words around it."""

from descend.data.text.tagged import TaggedText
from descend.engine.loop import Loop
from descend.kinds.encoder import EncoderSize
from descend.kinds.tag_text import TagRecipe
from descend.optim.rules import AdamW
from descend.optim.schedules import Linear

RECIPE = TagRecipe(
    about="a BERT tags words (--data.path FILE.jsonl or CoNLL), from scratch or from --model.path FOLDER",
    parameters=537_606,
    takes="1 min",
    model=EncoderSize(context=64, width=128, depth=2, heads=4, hidden=512, dropout=0.1),
    data=TaggedText(vocab=1024),
    optim=AdamW(lr=2e-3, weight_decay=0.05),
    schedule=Linear(warmup=50, floor=0.0),
    loop=Loop(steps=400, batch=32, clip=1.0, eval_every=50, save_every=200, watch="max accuracy"),
)
