"""python -m proofs.generators --images FOLDER: diffusion, flow matching, VAE and DCGAN on MNIST, in one table.

Each generator is trained by `descend train`, and its samples are judged as by `descend judge`: FID by the features of
a LeNet that was trained here and is named by the checksum of its weights, and the same distance of as many real images
from real ones. What counts is the ratio: 1 is as near as real digits are. Figures of another network, another n or
another size of the images cannot be compared with these.

Predicted before the first run: the averaged weights of both diffusion models are ahead of the raw ones of the same
step; DDIM in 50 steps is at most 10% behind DDPM in 1000 steps, with the same network; diffusion and flow matching are
ahead of the VAE.

Images are `--side` pixels wide: 16, with small networks and short runs, or 28, with both diffusion recipes as they are
by name, which takes far longer. What is interrupted goes on when it is called again: runs stay in runs/generators,
figures in GENERATORS.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

import descend
from descend.data.images.digits import Digits
from descend.engine import checkpoint
from descend.engine.run import Run
from descend.inference.judge import Judge
from descend.inference.sampler import Order, Sampler
from descend.labs._sweep import name_machine
from descend.weights.checkpoints import resolve_checkpoint

HERE = Path(__file__).parent
RUNS = HERE.parent / "runs" / "generators"
PATH, PAGE = HERE / "GENERATORS.json", HERE / "GENERATORS.md"
SIDE, COUNT, SEED, BATCH = 16, 500, 0, 250
WITHIN = 1.1  # the most that DDIM in 50 steps may be behind DDPM in 1000, as a factor
READER = ("lenet-mnist", {"steps": 1000, "eval_every": 250, "save_every": 500})
WIDTHS = (16, 32, 32)  # of the small U-Nets
SHORT = {"steps": 2000, "ema": 0.998, "eval_every": 1000, "save_every": 1000}
RUNS_AT_16: dict[str, tuple[str, dict[str, Any]]] = {
    "ddpm": ("ddpm-mnist", {**SHORT, "model.unet.widths": WIDTHS}),
    "flow": ("flow-matching-mnist", {**SHORT, "model.widths": WIDTHS}),
    "vae": ("vae-digits", {"steps": 2000, "eval_every": 1000, "save_every": 1000, "bound.importance": 1}),
    "dcgan": ("dcgan-digits", {"steps": 2000, "eval_every": 1000, "save_every": 1000}),
}
RUNS_AT_28: dict[str, tuple[str, dict[str, Any]]] = {
    "ddpm": ("ddpm-mnist", {}),
    "flow": ("flow-matching-mnist", {}),
    "vae": ("vae-digits", {"steps": 10_000, "bound.importance": 1}),
    "dcgan": ("dcgan-digits", {"steps": 10_000}),
}


class Row(NamedTuple):
    """A line of the table: whose samples, how they are drawn, and with which weights."""

    name: str
    run: str
    order: Order
    raw: bool = False


ROWS = (
    Row("DDPM's U-Net, DDIM in 50 steps", "ddpm", Order(steps=50, method="ddim")),
    Row("the same, raw weights", "ddpm", Order(steps=50, method="ddim"), raw=True),
    Row("flow matching", "flow", Order()),
    Row("the same, raw weights", "flow", Order(), raw=True),
    Row("VAE", "vae", Order()),
    Row("DCGAN", "dcgan", Order()),
    Row("DDPM's U-Net, DDPM in 1000 steps", "ddpm", Order(steps=1000, method="ddpm")),
)


def train(name: str, recipe: str, values: dict[str, Any], folder: Path) -> Path:
    """A run, or the rest of what there is of it; its folder."""
    run, _ = descend.train(recipe, {**values, "seed": SEED}, folder / name, quiet=True, resume_if_there=True)
    return run.folder


@torch.no_grad()
def draw(row: Row, run: Path, count: int) -> Tensor:
    """Samples of the last step, by the averaged weights or by those that were trained."""
    sampler = Sampler.open(run, "last")
    if row.raw:
        _, state = checkpoint.load(resolve_checkpoint(run, "last"))
        model = sampler.trained.model
        raw = {name: state["task"][f"model.{name}"] for name in model.state_dict()}
        model.load_state_dict(raw)
    return sampler.sample(count, SEED, row.order, BATCH)


def measure(row: Row, run: Path, judge: Judge, data: Any, count: int) -> dict[str, Any]:
    """The figures of a row."""
    splits = data.read_unlabelled()
    real = splits.test.x[torch.arange(count)]
    others = splits.valid.x[torch.arange(count)]
    began = time.perf_counter()
    made = draw(row, run, count)
    seconds = time.perf_counter() - began
    return {**judge.report(made, real, others), "seconds": seconds, "row": row.name, "raw": row.raw, "run": row.run}


def judge_predictions(found: Sequence[dict[str, Any]]) -> list[tuple[str, bool]]:
    """What was predicted, and whether it came so."""
    averaged, raw, flow, flow_raw, vae, _, slow = (row["fid"] for row in found)
    return [
        (f"averaged ahead of raw, DDPM's network: {averaged:.4g} and {raw:.4g}", averaged < raw),
        (f"averaged ahead of raw, flow matching: {flow:.4g} and {flow_raw:.4g}", flow < flow_raw),
        (f"DDIM-50 at most 10% behind DDPM-1000: {averaged:.4g} and {slow:.4g}", averaged <= WITHIN * slow),
        (f"both ahead of the VAE: {averaged:.4g} and {flow:.4g}, VAE {vae:.4g}", max(averaged, flow) < vae),
    ]


def format_page(record: dict[str, Any]) -> str:
    """The table, what it depends on, and the predictions."""
    found = record["rows"]
    first = found[0]
    lines = [
        "# Generators of MNIST's digits beside each other",
        "",
        f"`python -m proofs.generators --images FOLDER --side {record['side']}`: {record['date']}, {record['machine']}."
        f" One seed; images of {record['side']}×{record['side']}; {first['n']} samples against as many test images, as"
        f" seen by {first['network']} (right on {record['reader']:.1%} of the test images). FID × real: the distance as"
        f" a multiple of that of {first['n']} other real images, {first['real_fid']:.4g}.",
        *([] if record["side"] == 28 else ["", NOTE]),
        "",
        "| samples of | FID | FID × real | KID | precision | recall | training | drawing |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in found:
        minutes = record["training"][row["run"]] / 60
        lines.append(
            f"| {row['row']} | {row['fid']:.4g} | {row['fid_ratio']:.3g} | {row['kid']:.3g} | {row['precision']:.3f} "
            f"| {row['recall']:.3f} | {minutes:.1f} min | {row['seconds']:.0f} s |"
        )
    lines.append(
        f"| real images | {first['real_fid']:.4g} | 1 | {first['real_kid']:.3g} | {first['real_precision']:.3f} "
        f"| {first['real_recall']:.3f} | | |"
    )
    if len(found) == len(ROWS):
        lines += ["", "Predicted before the first run:", ""]
        lines += [f"- {told}: {'yes' if holds else 'NO'}" for told, holds in judge_predictions(found)]
    return "\n".join(lines) + "\n"


NOTE = (
    "This is the small table: MNIST shrunk to 16 pixels, U-Nets of 16 and 32 channels, 2000 steps for each generator. "
    "`--side 28` trains `ddpm-mnist` and `flow-matching-mnist` as they are, with 32 and 64 channels."
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proofs.generators", description=__doc__)
    parser.add_argument("--images", required=True, help="the IDX files of MNIST")
    parser.add_argument("--side", type=int, choices=(16, 28), default=SIDE)
    parser.add_argument("--count", type=int, default=COUNT, help="samples of each")
    given = parser.parse_args()
    folder = RUNS / str(given.side)
    chosen = RUNS_AT_16 if given.side == SIDE else RUNS_AT_28
    where = {"data.path": given.images}
    reader = train("reader", READER[0], {**READER[1], **where}, folder)
    judge = Judge.open(reader)
    kept: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}
    same = {"side": given.side, "network": judge.name, "count": given.count}
    record = kept if {name: kept.get(name) for name in same} == same else {**same, "rows": [], "training": {}}
    for row in ROWS[len(record["rows"]) :]:
        recipe, values = chosen[row.run]
        run = train(row.run, recipe, {**values, **where, "data.size": given.side, "data.valid": 0.05}, folder)
        data = Digits(given.images, size=given.side, valid=0.05)
        record["rows"].append(measure(row, run, judge, data, given.count))
        record["training"][row.run] = max(line["time"] for line in Run.open(run).lines() if "time" in line)
        record |= {"reader": read_accuracy(reader), "date": time.strftime("%Y-%m-%d"), "machine": name_machine()}
        PATH.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(format_page(record), encoding="utf-8")
        print(f"{row.name}: {record['rows'][-1]['fid_ratio']:.3g} times real", flush=True)
    for told, holds in judge_predictions(record["rows"]):
        print(f"{'yes' if holds else 'NO '} {told}")
    return 0 if all(holds for _, holds in judge_predictions(record["rows"])) else 1


def read_accuracy(reader: Path) -> float:
    """Of the judging network, on the test images."""
    return float(descend.evaluate(reader)["test"]["accuracy"])


if __name__ == "__main__":
    sys.exit(main())
