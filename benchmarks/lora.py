"""Fine-tuning by LoRA beside peft: the same LLaMA (30 M) from the same folder, r = 8 on all maps of attention, AdamW.

A step is 8 texts of 128 tokens: forward, loss, backward, update. Decoding is one text, greedy, with the adapter and
without it. One thread.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from benchmarks.turns import take_turns

BATCH, LENGTH, WRITTEN = 8, 128, 64
NAMES = ["q_proj", "k_proj", "v_proj", "o_proj"]


def config() -> Any:
    from descend.models.llama import LlamaConfig

    return LlamaConfig(vocab=8192, context=512, width=512, depth=8, heads=8, kv_heads=8, hidden=1376, tied=True)


@cache
def kept() -> tempfile.TemporaryDirectory[str]:
    """The base, as both sides open it; it goes with the process."""
    from descend.models import make_model

    torch.manual_seed(0)
    where = tempfile.TemporaryDirectory()
    make_model(config()).save_pretrained(where.name)
    return where


def folder() -> str:
    return kept().name


def tokens() -> torch.Tensor:
    return torch.randint(8192, (BATCH, LENGTH + 1), generator=torch.Generator().manual_seed(1))


def adapted() -> Any:
    from descend.kinds.adapters import Lora
    from descend.models import load

    return Lora(rank=8, alpha=16.0).apply(load(folder()))


def ours() -> Callable[[], object]:
    torch.set_num_threads(1)
    from descend.losses.language import causal_lm_loss
    from descend.optim.rules import AdamW

    model, batch = adapted().train(), tokens()
    optimizer = AdamW(1e-3).build(model)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        causal_lm_loss(model(batch[:, :-1]), batch[:, 1:]).backward()
        optimizer.step()

    return step


def theirs() -> Callable[[], object]:
    torch.set_num_threads(1)
    import peft
    from transformers import AutoModelForCausalLM

    base = AutoModelForCausalLM.from_pretrained(folder())
    model = peft.get_peft_model(base, peft.LoraConfig("CAUSAL_LM", r=8, lora_alpha=16, target_modules=NAMES)).train()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], 1e-3, fused=True)
    batch = tokens()

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        logits = model(input_ids=batch[:, :-1], use_cache=False).logits
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten()).backward()
        optimizer.step()

    return step


def write(select: str) -> Callable[[], object]:
    torch.set_num_threads(1)
    from descend.sampling.generate import generate

    model = adapted().eval()
    model.select(select)
    return lambda: generate(model.decoder(), [[1, 2, 3, 4]], WRITTEN)


def with_adapter() -> Callable[[], object]:
    return write("default")


def without() -> Callable[[], object]:
    return write("")


def measure(rounds: int = 5) -> list[dict[str, object]]:
    names = ("ours", "theirs", "with_adapter", "without")
    times, memory = take_turns({name: f"benchmarks.lora:{name}" for name in names}, rounds, 3)
    best = {name: min(found) for name, found in times.items()}
    step = {name: BATCH * LENGTH / best[name] for name in ("ours", "theirs")}
    write = {name: WRITTEN / best[name] for name in ("with_adapter", "without")}
    return [
        {"name": "LoRA training step, 30 M LLaMA", "ours": step["ours"], "theirs": step["theirs"], "unit": "tokens/s",
         "ratio": step["ours"] / step["theirs"], "bar": 1.0,
         "note": f"peft; r = 8 on attention; memory {memory['ours'] / memory['theirs']:.2f} of its"},
        {"name": "decoding with LoRA beside without", "ours": write["with_adapter"], "theirs": write["without"],
         "unit": "tokens/s", "ratio": write["with_adapter"] / write["without"], "bar": 0.95,
         "note": "the same model and decoder; merged when writing begins"},
    ]  # fmt: skip


if __name__ == "__main__":
    for row in measure():
        print(row)
