"""student-pydoc: a very small LLaMA on the Python documentation; with --teacher.path RUN a larger model teaches it."""

from descend.data.text.plain import Text
from descend.engine.loop import Loop
from descend.kinds.taught import TeachLanguage, WritingTeacher
from descend.models.llama import LlamaConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = TeachLanguage(
    about="a very small LLaMA on the Python documentation, alone or taught by a llama-pydoc run (--teacher.path RUN)",
    parameters=295_392,
    takes="2 min",
    model=LlamaConfig(context=128, width=96, depth=2, heads=3, kv_heads=1, hidden=256, tied=True),
    data=Text(tokenizer="bpe", vocab=1024),
    optim=AdamW(lr=3e-3, betas=(0.9, 0.98), weight_decay=0.1),
    schedule=Cosine(warmup=40, floor=0.05),
    teacher=WritingTeacher(alpha=0.2, temperature=1.0),
    loop=Loop(steps=300, batch=16, clip=1.0, eval_every=50, save_every=100),
)
