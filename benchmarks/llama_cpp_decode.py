"""LLaMA decoding beside llama.cpp: 8 layers, width 512, 8 heads, hidden 1408, vocabulary 4096; the same weights.

The model is exported to GGUF by `descend export` (F32 and Q8_0) and opened by llama-cpp-python, which has to be
installed beside descend. Greedy: a prompt of 16 tokens and 128 new ones, for one sequence and for 16 at once. Our int8
has the same groups of 32 as Q8_0, and rounds what it multiplies in the same way.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.turns import take_turns

PROMPT, NEW, VOCAB = 16, 128, 4096
Call = Callable[[], list[list[int]]]


def build() -> Any:
    """A random model whose tokens differ: N(0, 1/n) instead of N(0, 0.02²)."""
    from descend.models.llama import Llama, LlamaConfig

    torch.manual_seed(0)
    config = LlamaConfig(VOCAB, 256, width=512, depth=8, heads=8, kv_heads=8, hidden=1408)
    model = Llama(config).eval()
    for layer in model.modules():
        if isinstance(layer, torch.nn.Linear):
            torch.nn.init.normal_(layer.weight, std=layer.in_features**-0.5)
    return model


def prompts(batch: int) -> torch.Tensor:
    return torch.randint(300, VOCAB, (batch, PROMPT), generator=torch.Generator().manual_seed(0))


def ours(kind: str, batch: int) -> Call:
    from descend.nn.quantized import quantize
    from descend.sampling.generate import generate

    model = build()
    if kind == "q8_0":
        quantize(model, 8, 32)
    decoder, x = model.decoder(), prompts(batch)
    return lambda: generate(decoder, x, NEW)


@cache
def write(kind: str) -> Path:
    """The model as a GGUF file, with a tokenizer that nobody asks."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    from descend.exports.gguf import write_gguf

    folder = Path(tempfile.mkdtemp())
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = {letter: n for n, letter in enumerate([*letters, *(a + b for a in letters for b in letters)][:VOCAB])}
    inner = Tokenizer(models.BPE(words, [(word[0], word[1]) for word in words if len(word) == 2]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.save(str(folder / "tokenizer.json"))
    write_gguf(build(), folder, folder / "model.gguf", kind)
    return folder / "model.gguf"


@cache
def silence() -> object:
    """llama.cpp tells of every tensor; what it calls instead must live as long as it does."""
    native = import_module("llama_cpp")
    nothing = native.llama_log_callback(lambda *_: None)
    native.llama_log_set(nothing, None)
    return nothing


def theirs(kind: str, batch: int, exact: bool = False) -> Call:
    """llama.cpp's own loop: a batch of one token for each sequence, the largest logit of each.

    As it comes it keeps keys and values in 16 bits; `exact`: in float32, as ours.
    """
    native: Any = import_module("llama_cpp")
    silence()
    threads = torch.get_num_threads()
    settings = native.llama_model_default_params()
    model = native.llama_model_load_from_file(str(write(kind)).encode(), settings)
    room = native.llama_context_default_params()
    room.n_ctx, room.n_seq_max, room.n_batch = 256 * batch, batch, 512
    room.n_threads = room.n_threads_batch = threads
    if exact:
        room.type_k = room.type_v = 0
        room.flash_attn_type = 0
    context = native.llama_init_from_model(model, room)
    x = prompts(batch).tolist()

    def read(tokens: list[tuple[int, int, int, bool]], words: Any) -> None:
        for n, (token, place, row, asked) in enumerate(tokens):
            words.token[n], words.pos[n], words.n_seq_id[n], words.logits[n] = token, place, 1, asked
            words.seq_id[n][0] = row
        words.n_tokens = len(tokens)
        if native.llama_decode(context, words) != 0:
            raise RuntimeError("llama.cpp could not decode")

    def choose(n: int) -> int:
        return int(np.ctypeslib.as_array(native.llama_get_logits_ith(context, n), (VOCAB,)).argmax())

    def run() -> list[list[int]]:
        native.llama_memory_clear(native.llama_get_memory(context), True)
        words = native.llama_batch_init(512, 0, 1)
        read([(t, i, row, i == PROMPT - 1) for row in range(batch) for i, t in enumerate(x[row])], words)
        found = [[choose(row * PROMPT + PROMPT - 1)] for row in range(batch)]
        for step in range(NEW - 1):
            read([(found[row][-1], PROMPT + step, row, True) for row in range(batch)], words)
            for row in range(batch):
                found[row].append(choose(row))
        native.llama_batch_free(words)
        return found

    return run


def ours_f32() -> Call:
    return ours("f32", 1)


def theirs_f32() -> Call:
    return theirs("f32", 1)


def ours_q8() -> Call:
    return ours("q8_0", 1)


def theirs_q8() -> Call:
    return theirs("q8_0", 1)


def ours_q8_16() -> Call:
    return ours("q8_0", 16)


def theirs_q8_16() -> Call:
    return theirs("q8_0", 16)


def measure(rounds: int = 4, calls: int = 3) -> list[dict[str, object]]:
    """Tokens a second of both; in float32 they must be the same tokens. Nothing where llama.cpp is not installed."""
    if find_spec("llama_cpp") is None:
        print("llama_cpp_decode is left out: pip install llama-cpp-python")
        return []
    if ours_f32()() != theirs("f32", 1, exact=True)():
        raise RuntimeError("descend and llama.cpp write different tokens in float32")
    whats = {
        "f32": ("LLaMA decoding beside llama.cpp F32, batch 1", 1, 1.05),
        "q8": ("LLaMA decoding in int8 beside llama.cpp Q8_0, batch 1", 1, 1.0),
        "q8_16": ("LLaMA decoding in int8 beside llama.cpp Q8_0, batch 16", 16, 2.0),
    }
    names = [f"{side}_{what}" for what in whats for side in ("ours", "theirs")]
    times, memory = take_turns({name: f"benchmarks.llama_cpp_decode:{name}" for name in names}, rounds, calls)
    rows: list[dict[str, object]] = []
    for what, (title, batch, bar) in whats.items():
        a, b = min(times[f"ours_{what}"]), min(times[f"theirs_{what}"])
        count = batch * NEW
        rows.append({
            "name": title, "precision": "float32" if what == "f32" else "int8", "ours": count / a, "theirs": count / b,
            "unit": "tokens/s", "ratio": b / a, "bar": bar,
            "note": f"{1e3 * a / NEW:.2f} ms a step against {1e3 * b / NEW:.2f}; peak memory "
            f"{memory[f'ours_{what}'] / 1e6:.0f} MB against {memory[f'theirs_{what}'] / 1e6:.0f} MB",
        })  # fmt: skip
    return rows


if __name__ == "__main__":
    for row in measure():
        print(row)
