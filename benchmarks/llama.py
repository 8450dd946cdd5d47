"""LLaMA and Mixtral beside transformers: training steps with AdamW, and greedy decoding.

LLaMA training     6 layers, width 384, 6 heads, hidden 1024, context 256, batch 8, vocabulary 512
Mixtral training   4 layers, width 256, 8 heads, hidden 512, 2 of 8 experts; the better of transformers' two forms
LLaMA decoding     8 layers, width 512, 8 heads, hidden 1408, vocabulary 4096, prompt 16, 128 new tokens
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from benchmarks.turns import take_turns

CONTEXT, BATCH, VOCAB = 256, 8, 512
TOKENS = BATCH * CONTEXT
PROMPT, NEW = 16, 128
READ = 4 * (8 * (4 * 512**2 + 3 * 512 * 1408) + 4096 * 512)  # bytes of the matrices that a step reads
LLAMA_FLOPS = 6 * TOKENS * (6 * (4 * 384**2 + 3 * 384 * 1024 + 2 * CONTEXT * 384) + VOCAB * 384)
MIXTRAL_FLOPS = 6 * TOKENS * (4 * (4 * 256**2 + 2 * 3 * 256 * 512 + 2 * CONTEXT * 256) + VOCAB * 256)


def tokens() -> torch.Tensor:
    return torch.randint(VOCAB, (BATCH, CONTEXT + 1), generator=torch.Generator().manual_seed(0))


def engine(model: torch.nn.Module) -> Callable[[], object]:
    """descend's engine: a step of Training, as `descend train` takes it."""
    from descend.optim.rules import AdamW
    from descend.optim.schedules import Constant
    from descend.tasks.language import Language
    from descend.train.distributed import World
    from descend.train.hardware import keep_memory
    from descend.train.protocol import Loop, Parts
    from descend.train.training import Training

    keep_memory()
    w = tokens()

    class Same:
        def __next__(self) -> dict[str, torch.Tensor]:
            return {"x": w[:, :-1], "y": w[:, 1:]}

        def state_dict(self) -> dict[str, object]:
            return {}

        def load_state_dict(self, state: dict[str, object]) -> None:
            pass

    parts = Parts(Language(model), model, Same(), [], {"model": AdamW(lr=1e-3)})
    return Training(parts, Loop(), Constant(), World()).advance


def plain_loop(model: Any) -> Callable[[], object]:
    """A transformers model and the same fused AdamW."""
    optimizer = torch.optim.AdamW(model.train().parameters(), lr=1e-3, fused=True)
    x = tokens()[:, :-1].contiguous()

    def step() -> float:
        optimizer.zero_grad(set_to_none=True)
        loss = model(input_ids=x, labels=x, use_cache=False).loss
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


def ours_llama() -> Callable[[], object]:
    from descend.models.llama import Llama, LlamaConfig

    torch.manual_seed(0)
    config = LlamaConfig(VOCAB, CONTEXT, width=384, depth=6, heads=6, kv_heads=6, hidden=1024, tied=True)
    return engine(Llama(config))


def theirs_llama() -> Callable[[], object]:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCAB, max_position_embeddings=CONTEXT, hidden_size=384, num_hidden_layers=6, num_attention_heads=6,
        intermediate_size=1024, tie_word_embeddings=True,
    )  # fmt: skip
    return plain_loop(LlamaForCausalLM(config))


def ours_mixtral() -> Callable[[], object]:
    from descend.models.mixtral import Mixtral, MixtralConfig

    torch.manual_seed(0)
    return engine(Mixtral(MixtralConfig(VOCAB, CONTEXT, width=256, depth=4, heads=8, kv_heads=8, hidden=512)))


def theirs_mixtral(form: str = "eager") -> Callable[[], object]:
    from transformers import MixtralConfig, MixtralForCausalLM

    torch.manual_seed(0)
    config = MixtralConfig(
        vocab_size=VOCAB, max_position_embeddings=CONTEXT, hidden_size=256, num_hidden_layers=4, num_attention_heads=8,
        num_key_value_heads=8, intermediate_size=512,
    )  # fmt: skip
    config._experts_implementation = form
    return plain_loop(MixtralForCausalLM(config))


def theirs_mixtral_grouped() -> Callable[[], object]:
    return theirs_mixtral("grouped_mm")


@contextmanager
def saved() -> Iterator[tuple[str, Any]]:
    """A random transformers LLaMA, and the folder it is in."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=4096, max_position_embeddings=256, hidden_size=512, num_hidden_layers=8, num_attention_heads=8,
        intermediate_size=1408, bos_token_id=0, eos_token_id=None,
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        yield folder, model


def prompts(batch: int) -> torch.Tensor:
    return torch.randint(4096, (batch, PROMPT), generator=torch.Generator().manual_seed(0))


def ours_decode(batch: int = 1) -> Callable[[], list[list[int]]]:
    from descend.models import load
    from descend.sampling.generate import generate

    with saved() as (folder, _):
        decoder = load(folder).decoder()  # type: ignore[operator]
    x = prompts(batch)
    return lambda: generate(decoder, x, NEW)


def theirs_decode(batch: int = 1) -> Callable[[], list[list[int]]]:
    with saved() as (_, model):
        x = prompts(batch)

    def run() -> list[list[int]]:
        mask = torch.ones_like(x)
        found = model.generate(x, attention_mask=mask, max_new_tokens=NEW, do_sample=False, pad_token_id=0)
        return list(found[:, PROMPT:].tolist())

    return run


def ours_decode_16() -> Callable[[], object]:
    return ours_decode(16)


def theirs_decode_16() -> Callable[[], object]:
    return theirs_decode(16)


def measure(rounds: int = 4, calls: int = 3) -> list[dict[str, object]]:
    """Tokens a second of both; the decoders must write the same tokens."""
    from benchmarks.limits import sgemm_peak

    if ours_decode()() != theirs_decode()():
        raise RuntimeError("descend and transformers write different tokens")
    names = [f"{side}_{what}" for what in ("llama", "mixtral", "decode", "decode_16") for side in ("ours", "theirs")]
    targets = {name: f"benchmarks.llama:{name}" for name in (*names, "theirs_mixtral_grouped")}
    times, memory = take_turns(targets, rounds, calls)
    best, peak = {name: min(values) for name, values in times.items()}, sgemm_peak()
    theirs = min(("theirs_mixtral", "theirs_mixtral_grouped"), key=lambda name: best[name])
    best["theirs_mixtral"], memory["theirs_mixtral"] = best[theirs], memory[theirs]
    rows = []
    for what, title, count, flops in (
        ("llama", "LLaMA training step", TOKENS, LLAMA_FLOPS),
        ("mixtral", "Mixtral training step", TOKENS, MIXTRAL_FLOPS),
        ("decode", "LLaMA decoding, batch 1", NEW, 0),
        ("decode_16", "LLaMA decoding, batch 16", 16 * NEW, 0),
    ):
        a, b = best[f"ours_{what}"], best[f"theirs_{what}"]
        speed = f"{flops / a / 1e9:.0f} GFLOP/s, {flops / a / peak:.0%} of sgemm; theirs {flops / b / peak:.0%}; "
        step = f"{1e3 * a / NEW:.2f} ms a step against {1e3 * b / NEW:.2f}, {READ * NEW / a / 1e9:.1f} GB/s read; "
        rows.append({
            "name": title, "ours": count / a, "theirs": count / b, "unit": "tokens/s", "ratio": b / a,
            "bar": 1.05 if flops else 3.0, "note": (speed if flops else step)
            + f"peak memory {memory[f'ours_{what}'] / 1e6:.0f} MB against {memory[f'theirs_{what}'] / 1e6:.0f} MB",
        })  # fmt: skip
    return rows


if __name__ == "__main__":
    for row in measure():
        print(row)
