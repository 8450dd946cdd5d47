"""BERT and T5 beside transformers: training steps with AdamW, eager to eager and compiled to compiled, no dropout.

BERT   6 layers, width 384, 6 heads, hidden 1536, vocabulary 4096, 16 texts of 128 tokens, 15% of them to be found
T5     4 + 4 layers, width 256, 4 heads of 64, hidden 1024, vocabulary 4096, 16 pairs of 128 and 64 tokens
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.steps import engine, plain
from benchmarks.turns import take_turns

VOCAB, BATCH, SOURCE, TARGET = 4096, 16, 128, 64
CHOSEN = 0.15
BERT_FLOPS = 6 * BATCH * SOURCE * (6 * (12 * 384**2 + 2 * SOURCE * 384) + CHOSEN * (VOCAB + 384) * 384)
T5_FLOPS = 6 * BATCH * (
    SOURCE * 4 * (12 * 256**2 + 2 * SOURCE * 256)
    + TARGET * (4 * (14 * 256**2 + 2 * (SOURCE + TARGET) * 256) + VOCAB * 256) + SOURCE * 4 * 2 * 256**2
)  # fmt: skip


def masked() -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    x = torch.randint(5, VOCAB, (BATCH, SOURCE), generator=random)
    at = torch.rand(BATCH, SOURCE, generator=random) < CHOSEN
    return {"x": torch.where(at, 4, x), "y": x, "at": at}


def pairs() -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    return {name: torch.randint(5, VOCAB, (BATCH, n), generator=random) for name, n in (("x", SOURCE), ("y", TARGET))}


def ours_bert(compiled: str = "off") -> Callable[[], object]:
    from descend.models import model_class
    from descend.models.bert import BertConfig
    from descend.tasks.masked import MaskedLanguage

    torch.manual_seed(0)
    config = BertConfig(VOCAB, SOURCE, width=384, depth=6, heads=6, hidden=1536, dropout=0.0)
    return engine(MaskedLanguage(model_class("bert", "BertForMaskedLM")(config)), masked(), compiled)


def theirs_bert(compiled: bool = False) -> Callable[[], object]:
    from transformers import BertConfig, BertForMaskedLM

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=VOCAB, max_position_embeddings=SOURCE, hidden_size=384, num_hidden_layers=6, num_attention_heads=6,
        intermediate_size=1536, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    batch = masked()
    labels = torch.where(batch["at"], batch["y"], -100)
    return plain(BertForMaskedLM(config), lambda model: model(input_ids=batch["x"], labels=labels).loss, compiled)


def ours_t5(compiled: str = "off") -> Callable[[], object]:
    from descend.models.t5 import T5, T5Config
    from descend.tasks.sequence_to_sequence import SequenceToSequence

    torch.manual_seed(0)
    config = T5Config(VOCAB, 256, 4, 4, heads=4, head_size=64, hidden=1024, dropout=0.0)
    return engine(SequenceToSequence(T5(config), 0, 0), pairs(), compiled)


def theirs_t5(compiled: bool = False) -> Callable[[], object]:
    from transformers import T5Config, T5ForConditionalGeneration

    torch.manual_seed(0)
    config = T5Config(
        vocab_size=VOCAB, d_model=256, d_kv=64, d_ff=1024, num_layers=4, num_heads=4, dropout_rate=0.0,
        use_cache=False,
    )  # fmt: skip
    config.decoder_start_token_id = 0
    batch = pairs()
    mask = torch.ones_like(batch["x"])

    def loss(model: Any) -> torch.Tensor:
        found: torch.Tensor = model(input_ids=batch["x"], attention_mask=mask, labels=batch["y"]).loss
        return found

    return plain(T5ForConditionalGeneration(config), loss, compiled)


def ours_bert_compiled() -> Callable[[], object]:
    return ours_bert("on")


def theirs_bert_compiled() -> Callable[[], object]:
    return theirs_bert(True)


def ours_t5_compiled() -> Callable[[], object]:
    return ours_t5("on")


def theirs_t5_compiled() -> Callable[[], object]:
    return theirs_t5(True)


def measure(rounds: int = 4, calls: int = 3) -> list[dict[str, object]]:
    """Examples a second of both."""
    from benchmarks.limits import sgemm_peak

    peak, rows = sgemm_peak(), []
    for what, title, flops in (
        ("bert", "BERT training step, eager", BERT_FLOPS),
        ("bert_compiled", "BERT training step, compiled", BERT_FLOPS),
        ("t5", "T5 training step, eager", T5_FLOPS),
        ("t5_compiled", "T5 training step, compiled", T5_FLOPS),
    ):
        targets = {side: f"benchmarks.encoders:{side}_{what}" for side in ("ours", "theirs")}
        times, memory = take_turns(targets, rounds, calls)
        a, b = min(times["ours"]), min(times["theirs"])
        rows.append({
            "name": title, "ours": BATCH / a, "theirs": BATCH / b, "unit": "examples/s", "ratio": b / a, "bar": 1.05,
            "note": f"{flops / a / 1e9:.0f} GFLOP/s, {flops / a / peak:.0%} of sgemm; theirs {flops / b / peak:.0%}; "
            f"peak memory {memory['ours'] / 1e6:.0f} MB against {memory['theirs'] / 1e6:.0f} MB",
        })  # fmt: skip
    return rows


if __name__ == "__main__":
    for row in measure():
        print(row)
