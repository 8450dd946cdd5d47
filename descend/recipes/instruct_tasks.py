"""instruct-tasks: a small LLaMA learns to follow six short instructions, and to answer again in a conversation."""

from descend.data.text.conversation_source import Conversations
from descend.engine.loop import Loop
from descend.kinds.instruct import InstructRecipe
from descend.models.llama import LlamaConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = InstructRecipe(
    about="a small LLaMA follows instructions (or your conversations: --data.path FILE; your model: --start.path RUN)",
    parameters=101_056,
    takes="2 min",
    model=LlamaConfig(context=128, width=64, depth=2, heads=4, kv_heads=4, hidden=128, tied=True, spread=0.125),
    data=Conversations(),
    optim=AdamW(lr=3e-3, betas=(0.9, 0.98), weight_decay=0.01),
    schedule=Cosine(warmup=100, floor=0.02),
    loop=Loop(steps=2000, batch=64, clip=1.0, eval_every=250, save_every=500, watch="max exact"),
)
