"""LLaMA and Mixtral beside transformers: training steps with AdamW, eager to eager and compiled to compiled.

LLaMA     6 layers, width 384, 6 heads, hidden 1024, context 256, batch 8, vocabulary 512
Mixtral   4 layers, width 256, 8 heads, hidden 512, 2 of 8 experts; the better of transformers' two forms
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.steps import engine, plain
from benchmarks.turns import take_turns

CONTEXT, BATCH, VOCAB = 256, 8, 512
TOKENS = BATCH * CONTEXT
LLAMA_FLOPS = 6 * TOKENS * (6 * (4 * 384**2 + 3 * 384 * 1024 + 2 * CONTEXT * 384) + VOCAB * 384)
MIXTRAL_FLOPS = 6 * TOKENS * (4 * (4 * 256**2 + 2 * 3 * 256 * 512 + 2 * CONTEXT * 256) + VOCAB * 256)


def batch() -> dict[str, torch.Tensor]:
    w = torch.randint(VOCAB, (BATCH, CONTEXT + 1), generator=torch.Generator().manual_seed(0))
    return {"x": w[:, :-1].contiguous(), "y": w[:, 1:].contiguous()}


def loss(model: Any) -> torch.Tensor:
    x = batch()["x"]
    found: torch.Tensor = model(input_ids=x, labels=x, use_cache=False).loss
    return found


def ours_llama(compiled: str = "off") -> Callable[[], object]:
    from descend.models.llama import Llama, LlamaConfig
    from descend.tasks.language import Language

    torch.manual_seed(0)
    config = LlamaConfig(VOCAB, CONTEXT, width=384, depth=6, heads=6, kv_heads=6, hidden=1024, tied=True)
    return engine(Language(Llama(config)), batch(), compiled)


def theirs_llama(compiled: bool = False) -> Callable[[], object]:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCAB, max_position_embeddings=CONTEXT, hidden_size=384, num_hidden_layers=6, num_attention_heads=6,
        intermediate_size=1024, tie_word_embeddings=True,
    )  # fmt: skip
    return plain(LlamaForCausalLM(config), loss, compiled)


def ours_llama_compiled() -> Callable[[], object]:
    return ours_llama("on")


def theirs_llama_compiled() -> Callable[[], object]:
    return theirs_llama(True)


def ours_mixtral(compiled: str = "off") -> Callable[[], object]:
    from descend.models.mixtral import Mixtral, MixtralConfig
    from descend.tasks.language import Language

    torch.manual_seed(0)
    config = MixtralConfig(VOCAB, CONTEXT, width=256, depth=4, heads=8, kv_heads=8, hidden=512)
    return engine(Language(Mixtral(config)), batch(), compiled)


def theirs_mixtral(form: str = "eager", compiled: bool = False) -> Callable[[], object]:
    from transformers import MixtralConfig, MixtralForCausalLM

    torch.manual_seed(0)
    config = MixtralConfig(
        vocab_size=VOCAB, max_position_embeddings=CONTEXT, hidden_size=256, num_hidden_layers=4, num_attention_heads=8,
        num_key_value_heads=8, intermediate_size=512,
    )  # fmt: skip
    config._experts_implementation = form
    return plain(MixtralForCausalLM(config), loss, compiled)


def theirs_mixtral_grouped() -> Callable[[], object]:
    return theirs_mixtral("grouped_mm")


def ours_mixtral_compiled() -> Callable[[], object]:
    return ours_mixtral("on")


def theirs_mixtral_compiled() -> Callable[[], object]:
    return theirs_mixtral("grouped_mm", True)


def measure(rounds: int = 4, calls: int = 3) -> list[dict[str, object]]:
    """Tokens a second of both; the better of their forms."""
    from benchmarks.limits import sgemm_peak

    peak, rows = sgemm_peak(), []
    for what, title, theirs, flops in (
        ("llama", "LLaMA training step, eager", ["theirs_llama"], LLAMA_FLOPS),
        ("llama_compiled", "LLaMA training step, compiled", ["theirs_llama_compiled"], LLAMA_FLOPS),
        ("mixtral", "Mixtral training step, eager", ["theirs_mixtral", "theirs_mixtral_grouped"], MIXTRAL_FLOPS),
        ("mixtral_compiled", "Mixtral training step, compiled", ["theirs_mixtral_compiled"], MIXTRAL_FLOPS),
    ):
        targets = {name: f"benchmarks.llama:{name}" for name in (f"ours_{what}", *theirs)}
        times, memory = take_turns(targets, rounds, calls)
        best = {name: min(values) for name, values in times.items()}
        them = min(theirs, key=lambda name: best[name])
        a, b = best[f"ours_{what}"], best[them]
        rows.append({
            "name": title, "ours": TOKENS / a, "theirs": TOKENS / b, "unit": "tokens/s", "ratio": b / a, "bar": 1.05,
            "note": f"{flops / a / 1e9:.0f} GFLOP/s, {flops / a / peak:.0%} of sgemm; theirs {flops / b / peak:.0%}; "
            f"peak memory {memory[f'ours_{what}'] / 1e6:.0f} MB against {memory[them] / 1e6:.0f} MB",
        })  # fmt: skip
    return rows


if __name__ == "__main__":
    for row in measure():
        print(row)
