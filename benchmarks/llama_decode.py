"""LLaMA decoding beside transformers: 8 layers, width 512, 8 heads, hidden 1408, vocabulary 4096; equal weights.

Greedy: a prompt of 16 and 128 new tokens for one sequence and for 16, and the first token after a prompt of 4096.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from benchmarks.turns import take_turns

PROMPT, NEW, LONG = 16, 128, 4096
READ = 4 * (8 * (4 * 512**2 + 3 * 512 * 1408) + 4096 * 512)  # bytes of the matrices that a step reads
PROBE = 256 * 2**20


@contextmanager
def saved(context: int = 256) -> Iterator[tuple[str, Any]]:
    """A random transformers LLaMA, and the folder it is in."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=4096, max_position_embeddings=context, hidden_size=512, num_hidden_layers=8, num_attention_heads=8,
        intermediate_size=1408, bos_token_id=0, eos_token_id=None,
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        yield folder, model


def prompts(batch: int, length: int) -> torch.Tensor:
    return torch.randint(4096, (batch, length), generator=torch.Generator().manual_seed(0))


def ours(batch: int = 1, length: int = PROMPT, new: int = NEW) -> Callable[[], list[list[int]]]:
    from descend.models import load
    from descend.sampling.generate import generate

    with saved(max(256, length + new)) as (folder, _):
        decoder = load(folder).decoder()  # type: ignore[operator]
    x = prompts(batch, length)
    return lambda: generate(decoder, x, new)


def theirs(batch: int = 1, length: int = PROMPT, new: int = NEW) -> Callable[[], list[list[int]]]:
    with saved(max(256, length + new)) as (_, model):
        x = prompts(batch, length)

    def run() -> list[list[int]]:
        mask = torch.ones_like(x)
        found = model.generate(x, attention_mask=mask, max_new_tokens=new, do_sample=False, pad_token_id=0)
        return list(found[:, length:].tolist())

    return run


def ours_16() -> Callable[[], object]:
    return ours(16)


def theirs_16() -> Callable[[], object]:
    return theirs(16)


def ours_first() -> Callable[[], object]:
    return ours(1, LONG, 1)


def theirs_first() -> Callable[[], object]:
    return theirs(1, LONG, 1)


def probe() -> Callable[[], object]:
    """One read of 256 MiB, taking its turn with the others."""
    x = torch.ones(PROBE // 4)
    return x.sum


def measure(rounds: int = 3, calls: int = 3) -> list[dict[str, object]]:
    """Tokens a second of both, which must be the same tokens; and the share of the memory's bandwidth at batch 1."""
    if ours()() != theirs()():
        raise RuntimeError("descend and transformers write different tokens")
    names = ["probe", *(f"{side}{what}" for what in ("", "_16", "_first") for side in ("ours", "theirs"))]
    times, memory = take_turns({name: f"benchmarks.llama_decode:{name}" for name in names}, rounds, calls)
    best = {name: min(values) for name, values in times.items()}
    rows: list[dict[str, object]] = []
    for what, title, count, bar in (
        ("", "LLaMA decoding, batch 1", NEW, 3.0),
        ("_16", "LLaMA decoding, batch 16", 16 * NEW, 3.0),
        ("_first", "LLaMA, first token after a prompt of 4096", LONG, 1.0),
    ):
        a, b = best[f"ours{what}"], best[f"theirs{what}"]
        rows.append({
            "name": title, "ours": count / a, "theirs": count / b, "unit": "tokens/s", "ratio": b / a, "bar": bar,
            "note": f"{1e3 * a:.0f} ms a call against {1e3 * b:.0f}; "
            f"peak memory {memory[f'ours{what}'] / 1e6:.0f} MB against {memory[f'theirs{what}'] / 1e6:.0f} MB",
        })  # fmt: skip
    reached, bandwidth = READ * NEW / best["ours"], PROBE / best["probe"]
    rows.append({
        "name": "LLaMA decoding, batch 1, weights read", "ours": reached / 1e9, "theirs": bandwidth / 1e9,
        "unit": "GB/s", "ratio": reached / bandwidth, "bar": 0.6,
        "note": f"{READ / 1e6:.0f} MB per step; theirs is the memory's bandwidth, read 256 MiB at a time",
    })  # fmt: skip
    return rows


if __name__ == "__main__":
    for row in measure():
        print(row)
