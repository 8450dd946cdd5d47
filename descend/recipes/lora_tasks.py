"""lora-tasks: a frozen language model learns to follow short instructions by LoRA; meant for --start.path RUN."""

from descend.data.text.conversation_source import Conversations
from descend.engine.loop import Loop
from descend.kinds.adapters import Lora
from descend.kinds.instruct import InstructRecipe
from descend.models.llama import LlamaConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = InstructRecipe(
    about="LoRA beside a frozen language model (--start.path RUN or FOLDER) learns to follow instructions",
    parameters=763_392,
    takes="8 min",
    model=LlamaConfig(context=128, width=128, depth=4, heads=4, kv_heads=4, hidden=256, tied=True),
    data=Conversations(),
    adapter=Lora(rank=8, alpha=16.0, targets=("q", "k", "v", "out", "gate", "up", "down")),
    optim=AdamW(lr=4e-3, betas=(0.9, 0.98), weight_decay=0.0),
    schedule=Cosine(warmup=100, floor=0.02),
    loop=Loop(steps=3000, batch=64, clip=1.0, eval_every=250, save_every=500, watch="max exact"),
)
