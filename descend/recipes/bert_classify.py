"""bert-classify: from which chapter of the Python documentation is a passage? New, or from a trained encoder."""

from descend.data.text.labelled import LabelledText
from descend.engine.loop import Loop
from descend.kinds.classify_text import TextRecipe
from descend.kinds.encoder import EncoderSize
from descend.optim.rules import AdamW
from descend.optim.schedules import Linear

RECIPE = TextRecipe(
    about="a BERT classifies texts (--data.path FILE.jsonl or .tsv), from scratch or from --model.path FOLDER",
    parameters=554_634,
    takes="1 min",
    model=EncoderSize(context=64, width=128, depth=2, heads=4, hidden=512, dropout=0.1),
    data=LabelledText(vocab=1024),
    optim=AdamW(lr=1e-3, weight_decay=0.05),
    schedule=Linear(warmup=30, floor=0.0),
    loop=Loop(steps=300, batch=32, clip=1.0, eval_every=30, save_every=150, watch="max accuracy"),
)
