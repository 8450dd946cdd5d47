"""Run every benchmark and write RESULTS.md: `python -m benchmarks [names]`."""

from __future__ import annotations

import platform
import sys
import time
from importlib import import_module
from pathlib import Path

import torch

from descend.train.hardware import environment

NAMES = ("train_step", "decode", "overhead")


def main(names: list[str]) -> None:
    rows = [row for name in names or NAMES for row in import_module(f"benchmarks.{name}").measure()]
    where = environment()
    lines = [
        "# Speed",
        "",
        f"{time.strftime('%Y-%m-%d %H:%M')}, {where['cpu']}, {torch.get_num_threads()} threads, "
        f"Python {where['python']}, torch {where['torch']}, {platform.system()}.",
        "Each pair took turns in one run; figures are of the best call. A ratio above its bar is good.",
        "",
        "| what | ours | theirs | unit | ratio | bar | note |",
        "|---|---:|---:|---|---:|---:|---|",
    ]
    for row in rows:
        ok = "" if float(row["ratio"]) >= float(row["bar"]) else " (not reached)"
        lines.append(
            f"| {row['name']} | {float(row['ours']):,.4g} | {float(row['theirs']):,.4g} | {row['unit']} "
            f"| {float(row['ratio']):.2f}{ok} | {float(row['bar']):.2f} | {row['note']} |"
        )
    print("\n".join(lines))
    if not names:
        (Path(__file__).parent / "RESULTS.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
