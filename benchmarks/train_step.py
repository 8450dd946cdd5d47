"""A GPT-2 training step beside transformers: 6 layers, width 384, context 256, batch 8, vocabulary 512, AdamW."""

from __future__ import annotations

from collections.abc import Callable

import torch

from benchmarks.steps import engine, plain
from benchmarks.turns import take_turns

DEPTH, WIDTH, CONTEXT, BATCH, VOCAB, HEADS = 6, 384, 256, 8, 512, 6
TOKENS = BATCH * CONTEXT
# Matrix products of a step, forward and twice that backward; causal attention is counted over the full square.
FLOPS = 3 * 2 * TOKENS * (DEPTH * (12 * WIDTH**2 + 2 * CONTEXT * WIDTH) + VOCAB * WIDTH)


def tokens() -> torch.Tensor:
    return torch.randint(VOCAB, (BATCH, CONTEXT + 1), generator=torch.Generator().manual_seed(0))


def ours(compiled: str = "off") -> Callable[[], object]:
    """descend's engine: a step of Training, as `descend train` takes it."""
    from descend.models.gpt2 import GPT2, GPT2Config
    from descend.tasks.language import Language

    torch.manual_seed(0)
    model = GPT2(GPT2Config(vocab=VOCAB, context=CONTEXT, width=WIDTH, depth=DEPTH, heads=HEADS, dropout=0.0))
    w = tokens()
    return engine(Language(model), {"x": w[:, :-1], "y": w[:, 1:]}, compiled)


def ours_compiled() -> Callable[[], object]:
    return ours("on")


def theirs(compiled: bool = False) -> Callable[[], object]:
    """transformers' GPT2LMHeadModel and the same fused AdamW in a plain loop."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=VOCAB, n_positions=CONTEXT, n_embd=WIDTH, n_layer=DEPTH, n_head=HEADS,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    x = tokens()[:, :-1].contiguous()
    return plain(GPT2LMHeadModel(config), lambda model: model(input_ids=x, labels=x).loss, compiled)


def theirs_compiled() -> Callable[[], object]:
    return theirs(True)


def measure(rounds: int = 5, calls: int = 4) -> list[dict[str, object]]:
    """Tokens a second of both, eager and compiled, and the share of the matrix-product peak."""
    from benchmarks.limits import sgemm_peak

    names = ("ours", "theirs", "ours_compiled", "theirs_compiled")
    times, memory = take_turns({name: f"benchmarks.train_step:{name}" for name in names}, rounds, calls)
    best, peak = {name: min(values) for name, values in times.items()}, sgemm_peak()
    rows = []
    for suffix, bar in (("", 1.2), ("_compiled", 1.05)):
        a, b = best["ours" + suffix], best["theirs" + suffix]
        rows.append({
            "name": f"GPT-2 training step, {'compiled' if suffix else 'eager'}",
            "ours": TOKENS / a, "theirs": TOKENS / b, "unit": "tokens/s", "ratio": b / a, "bar": bar,
            "note": f"{FLOPS / a / 1e9:.0f} GFLOP/s, {FLOPS / a / peak:.0%} of sgemm ({peak / 1e9:.0f}); "
            f"theirs {FLOPS / b / peak:.0%}; peak memory {memory['ours' + suffix] / 1e6:.0f} MB against "
            f"{memory['theirs' + suffix] / 1e6:.0f} MB",
        })  # fmt: skip
    return rows


if __name__ == "__main__":
    for row in measure():
        print(row)
