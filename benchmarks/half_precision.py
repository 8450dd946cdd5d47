"""Training steps in bfloat16: descend's engine beside transformers under torch's autocast, and beside its own float32.

The workloads are those of train_step, llama, encoders, vit, swin and resnet, eager.
"""

from __future__ import annotations

from benchmarks import encoders, llama, resnet, swin, train_step, vit
from benchmarks.turns import take_turns

WORKLOADS = {  # title -> module, the end of its functions' names, units in a step, unit
    "GPT-2": ("train_step", "", train_step.TOKENS, "tokens/s"),
    "LLaMA": ("llama", "_llama", llama.TOKENS, "tokens/s"),
    "BERT": ("encoders", "_bert", encoders.BATCH, "examples/s"),
    "T5": ("encoders", "_t5", encoders.BATCH, "examples/s"),
    "ViT": ("vit", "", vit.BATCH, "images/s"),
    "Swin-T": ("swin", "", swin.BATCH, "images/s"),
    "ResNet-18": ("resnet", "", resnet.BATCH, "images/s"),
}


def measure(rounds: int = 4, calls: int = 3, only: tuple[str, ...] = tuple(WORKLOADS)) -> list[dict[str, object]]:
    """Units a second in bfloat16 of both, and how much faster that is than our float32."""
    rows = []
    for title in only:
        module, end, units, unit = WORKLOADS[title]
        ours, theirs = (f"benchmarks.{module}:{side}{end}" for side in ("ours", "theirs"))
        targets = {"ours": ours, "theirs": theirs, "float32": ours}
        times, memory = take_turns(targets, rounds, calls, bfloat16=("ours", "theirs"))
        a, b, single = (min(times[name]) for name in targets)
        rows.append({
            "name": f"{title} training step, bfloat16", "precision": "bfloat16", "ours": units / a, "theirs": units / b,
            "unit": unit, "ratio": b / a, "bar": 1.1,
            "note": f"{single / a:.2f} times our float32 ({units / single:,.4g}); "
            f"peak memory {memory['ours'] / 1e6:.0f} MB against {memory['theirs'] / 1e6:.0f} MB",
        })  # fmt: skip
    return rows


if __name__ == "__main__":
    for row in measure():
        print(row)
