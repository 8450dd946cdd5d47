"""llama-pydoc: a small LLaMA learns the language reference that ships with Python. No download, minutes on a laptop."""

from descend.data.text.plain import Text
from descend.engine.loop import Loop
from descend.kinds.language import LanguageRecipe
from descend.models.llama import LlamaConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = LanguageRecipe(
    about="a small LLaMA on the Python documentation (or any text: --data.path FILE)",
    parameters=1_771_200,
    takes="2 min",
    model=LlamaConfig(context=128, width=192, depth=4, heads=6, kv_heads=2, hidden=512, tied=True),
    data=Text(tokenizer="bpe", vocab=1024),
    optim=AdamW(lr=3e-3, betas=(0.9, 0.98), weight_decay=0.1),
    schedule=Cosine(warmup=40, floor=0.05),
    loop=Loop(steps=300, batch=16, clip=1.0, eval_every=50, save_every=100),
)
