"""Greedy decoding beside transformers: GPT-2 with 8 layers, width 512, 8 heads, vocabulary 4096, context 256.

A prompt of 16 tokens and 128 new ones, batch 1 and batch 16, both with a cache. A step reads every matrix once,
so at batch 1 the memory's bandwidth is the limit; its share counts all matrices, the tied embedding as output matrix.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable

import torch

from benchmarks.turns import take_turns

DEPTH, WIDTH, HEADS, VOCAB, CONTEXT = 8, 512, 8, 4096, 256
PROMPT, TOKENS = 16, 128
WEIGHTS = 4 * (DEPTH * 12 * WIDTH**2 + VOCAB * WIDTH)  # bytes that a step reads
PROBE = 256 * 2**20  # bytes that the bandwidth probe reads


def prompts(batch: int) -> torch.Tensor:
    return torch.randint(VOCAB, (batch, PROMPT), generator=torch.Generator().manual_seed(0))


def transformers_model() -> torch.nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=VOCAB, n_positions=CONTEXT, n_embd=WIDTH, n_layer=DEPTH, n_head=HEADS,
        bos_token_id=0, eos_token_id=None
    )  # fmt: skip
    model: torch.nn.Module = GPT2LMHeadModel(config).eval()
    return model


def ours(batch: int) -> Callable[[], list[list[int]]]:
    """The weights of transformers' model, opened by descend."""
    from descend.models import load
    from descend.sampling.generate import generate

    with tempfile.TemporaryDirectory() as folder:
        transformers_model().save_pretrained(folder)  # type: ignore[operator]
        decoder = load(folder).decoder()  # type: ignore[operator]
    x = prompts(batch)
    return lambda: generate(decoder, x, TOKENS)


def theirs(batch: int) -> Callable[[], list[list[int]]]:
    """transformers' generate with its default (dynamic) cache."""
    model, x = transformers_model(), prompts(batch)

    def run() -> list[list[int]]:
        found = model.generate(  # type: ignore[operator]
            x, attention_mask=torch.ones_like(x), max_new_tokens=TOKENS, do_sample=False, pad_token_id=0
        )
        return list(found[:, PROMPT:].tolist())

    return run


def ours_1() -> Callable[[], object]:
    return ours(1)


def theirs_1() -> Callable[[], object]:
    return theirs(1)


def ours_16() -> Callable[[], object]:
    return ours(16)


def theirs_16() -> Callable[[], object]:
    return theirs(16)


def probe() -> Callable[[], object]:
    """One read of 256 MiB, taking its turn with the others."""
    x = torch.ones(PROBE // 4)
    return x.sum


def measure(rounds: int = 3) -> list[dict[str, object]]:
    """Tokens a second of both at batch 1 and 16, and the share of the memory's bandwidth at batch 1."""
    for batch in (1, 16):
        if ours(batch)() != theirs(batch)():
            raise RuntimeError(f"batch {batch}: descend and transformers write different tokens")
    names = ("probe", "ours_1", "theirs_1", "ours_16", "theirs_16")
    times, memory = take_turns({name: f"benchmarks.decode:{name}" for name in names}, rounds, 2)
    best = {name: min(values) for name, values in times.items()}
    bandwidth, reached = PROBE / best["probe"], TOKENS * WEIGHTS / best["ours_1"]
    rows: list[dict[str, object]] = []
    for batch in (1, 16):
        a, b = best[f"ours_{batch}"], best[f"theirs_{batch}"]
        rows.append({
            "name": f"GPT-2 decoding, batch {batch}", "ours": batch * TOKENS / a, "theirs": batch * TOKENS / b,
            "unit": "tokens/s", "ratio": b / a, "bar": 3.0,
            "note": f"{1e3 * a / TOKENS:.2f} ms per step against {1e3 * b / TOKENS:.2f}; the same tokens; peak memory "
            f"{memory[f'ours_{batch}'] / 1e6:.0f} MB against {memory[f'theirs_{batch}'] / 1e6:.0f} MB",
        })  # fmt: skip
    rows.append({
        "name": "GPT-2 decoding, batch 1, weights read", "ours": reached / 1e9, "theirs": bandwidth / 1e9,
        "unit": "GB/s", "ratio": reached / bandwidth, "bar": 0.5,
        "note": f"{WEIGHTS / 1e6:.0f} MB per step; theirs is the memory's bandwidth, read 256 MiB at a time",
    })  # fmt: skip
    return rows


if __name__ == "__main__":
    torch.set_num_threads(2)
    for row in measure():
        print(row)
