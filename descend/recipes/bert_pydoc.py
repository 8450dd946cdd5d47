"""bert-pydoc: a small BERT learns to fill in blanks of the Python documentation. No download, minutes on a laptop."""

from descend.data.text.plain import Text
from descend.engine.loop import Loop
from descend.kinds.encoder import EncoderSize
from descend.kinds.masked import MaskedRecipe
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = MaskedRecipe(
    about="a small BERT fills in blanks of the Python documentation (or any text: --data.path FILE)",
    parameters=472_068,
    takes="2 min",
    model=EncoderSize(context=64, width=128, depth=2, heads=4, hidden=512, dropout=0.0),
    data=Text(tokenizer="bpe", vocab=384),
    optim=AdamW(lr=3e-3, betas=(0.9, 0.98), weight_decay=0.05),
    schedule=Cosine(warmup=100, floor=0.02),
    loop=Loop(steps=2000, batch=16, clip=1.0, eval_every=200, save_every=500),
)
