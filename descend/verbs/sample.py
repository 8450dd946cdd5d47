"""descend sample: new examples from a generative model."""

from __future__ import annotations

import json as json_module
import math
from pathlib import Path
from typing import Annotated

import tyro
from torch import Tensor

from descend.errors import Mistake
from descend.files import write_text
from descend.inference.sampler import Order, Sampler
from descend.inference.saving import check_out
from descend.inference.trained import BATCH
from descend.own_code import use_code
from descend.report.sheet import Row, check_new_png, to_bytes, write_png

MOST_DIGITS = 6  # in the number of an image's file


def sample(
    run: str | Path,
    count: int = 16,
    seed: int = 0,
    checkpoint: str | int = "best",
    steps: int = 0,
    guidance: float | None = None,
    method: str = "",
    label: str = "",
    prompt: str = "",
    batch: int = BATCH,
    first: int = 0,
) -> Tensor:
    """New examples from a generative model: points (count, d), or images (count, c, h, w) in 0..1.

    Args:
        run: a run's folder, or a model folder.
        count: how many examples.
        seed: of the random numbers; the same seed gives the same examples.
        checkpoint: best, last or a step.
        steps: of an iterative sampler; 0: the model's own number.
        guidance: how much the class or prompt counts; 1 is the conditional model itself.
        method: the sampler, e.g. ddpm or ddim.
        label: the class of the examples.
        prompt: what they should show.
        batch: how many are made at a time.
        first: number of the first example, so that one of a batch can be made again.
    """
    order = Order(steps, guidance, method, label, prompt)
    return Sampler.open(run, checkpoint).sample(count, seed, order, batch, first)


def command(
    run: str,
    /,
    *,
    count: Annotated[int, tyro.conf.arg(aliases=["-n"])] = 16,
    seed: int = 0,
    steps: int = 0,
    guidance: float | None = None,
    method: str = "",
    label: Annotated[str, tyro.conf.arg(name="class")] = "",
    prompt: str = "",
    out: str = "",
    replace: bool = False,
    batch: int = BATCH,
    first: int = 0,
    checkpoint: str = "best",
    code: str = "",
    json: bool = False,
) -> None:
    """Draw new examples from a generative model: images as files, points as lines of numbers.

    Args:
        run: a run's folder, or a model folder.
        count: how many examples.
        seed: of the random numbers; the same seed gives the same examples.
        steps: of an iterative sampler; 0: the model's own number.
        guidance: how much the class or prompt counts; 1 is the conditional model itself.
        method: the sampler, e.g. ddpm or ddim.
        label: the class of the examples.
        prompt: what they should show.
        out: images: a .png file for all of them, or a folder for one file each; points: a .csv file.
        replace: write `out` anew where it exists.
        batch: how many are made at a time: bounds the memory.
        first: number of the first example, so that one of a batch can be made again.
        checkpoint: best, last or a step.
        code: the file of a recipe or model of your own, where it is not found by its name.
        json: print JSON.

    Examples:
        descend sample runs/gan-mixture -n 1000 --seed 1 --out points.csv
        descend sample runs/digits -n 64 --class 7 --guidance 3 --out sevens.png
        descend sample runs/digits -n 1 --seed 1 --first 17 --out one.png
    """
    use_code(code)
    sampler = Sampler.open(run, checkpoint)
    path = choose_out(out, run, sampler, json)
    check_place(path, sampler, replace)
    x = sampler.sample(count, seed, Order(steps, guidance, method, label, prompt), batch, first)
    if path is None:
        print(json_module.dumps(x.tolist()) if json else "\n".join(format_rows(x)))
        return
    write_examples(path, x, first)
    print(f"{len(x):,} {'samples' if sampler.prepare is None else 'images'}: {path}")


def choose_out(out: str, run: str, sampler: Sampler, json: bool) -> Path | None:
    """Where the examples go: None for the terminal. Images are written even if no place is named."""
    if out:
        return Path(out)
    return None if json or sampler.prepare is None else Path(f"{Path(run).resolve().name}-samples.png")


def check_place(path: Path | None, sampler: Sampler, replace: bool) -> None:
    """Refuse a place that cannot be written, before anything is computed."""
    if path is None:
        return
    if sampler.prepare is None:
        check_out(path, replace, (".csv", ".tsv"))
    elif path.suffix:
        check_new_png(path, "--out", replace)
    elif path.exists() and (not path.is_dir() or any(path.iterdir())) and not replace:
        raise Mistake(f"--out {path} exists and is not an empty folder; give --replace, or another name")


def write_examples(path: Path, x: Tensor, first: int) -> None:
    """Points as a table; images as one sheet (.png) or one file each (a folder)."""
    if x.dim() == 2:
        separator = "\t" if path.suffix == ".tsv" else ","
        write_text(path, "\n".join(format_rows(x, separator)) + "\n")
    elif path.suffix:
        write_png(path, lay_out(x), "--out")
    else:
        path.mkdir(parents=True, exist_ok=True)
        for i, image in enumerate(x, first):
            write_png(path / f"{i:0{MOST_DIGITS}}.png", [[to_bytes(image)]], "--out")


def lay_out(x: Tensor) -> list[Row]:
    """Images in rows of a nearly square sheet; the last row is filled up with black."""
    columns = math.ceil(math.sqrt(len(x)))
    cells = [to_bytes(image) for image in x]
    cells += [cells[0] * 0] * (-len(cells) % columns)
    return [list(cells[i : i + columns]) for i in range(0, len(cells), columns)]


def format_rows(x: Tensor, separator: str = ",") -> list[str]:
    """One example on each line."""
    return [separator.join(f"{v:.6g}" for v in row) for row in x.flatten(1).tolist()]
