"""Run every benchmark and write RESULTS.md: `python -m benchmarks [names]`."""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from descend.engine.hardware import describe_environment

HERE = Path(__file__).parent
NAMES = (
    "train_step", "vit", "swin", "decode", "llama", "llama_decode", "encoders", "lstm", "resnet", "half_precision",
    "overhead", "losses", "optimizers", "long_attention", "tokenizers", "image_pipeline", "object_pipeline", "unet",
    "flows", "unet_diffusion", "nms", "detection_scores", "yolo_forward", "set_prediction", "graphs", "ppo", "lora",
    "serving", "exact_search", "llama_cpp_decode",
)  # fmt: skip
HEAD = """# Speed

Each pair took turns in one run; figures are of the best call. A ratio above its bar is good.

| what | precision | ours | theirs | unit | ratio | bar | note |
|---|---|---:|---:|---|---:|---:|---|"""


def main(names: list[str]) -> None:
    """Measure, show each figure as it comes, and keep those of benchmarks that were not run this time."""
    path = HERE / "RESULTS.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    where = describe_environment()
    for name in names or NAMES:
        rows = import_module(f"benchmarks.{name}").measure()
        when = f"{time.strftime('%Y-%m-%d')}, {where['cpu']}, {torch.get_num_threads()} threads, torch {where['torch']}"
        results[name] = [{**row, "when": when} for row in rows]
        print("\n".join(map(line, rows)), flush=True)
        path.write_text(json.dumps(results, indent=2) + "\n")
        page = [HEAD, *(line(row) for found in results.values() for row in found), "", f"Measured {when}."]
        (HERE / "RESULTS.md").write_text("\n".join(page) + "\n", encoding="utf-8")


def line(row: dict[str, Any]) -> str:
    """A row of the table; a bar that was missed says so."""
    missed = "" if row["ratio"] >= row["bar"] else " (not reached)"
    return (
        f"| {row['name']} | {row.get('precision', 'float32')} | {row['ours']:,.4g} | {row['theirs']:,.4g} "
        f"| {row['unit']} "
        f"| {row['ratio']:.2f}{missed} | {row['bar']:.2f} | {row['note']} |"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
