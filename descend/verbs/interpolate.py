"""descend interpolate: from one sample to another, step by step."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro
from torch import Tensor

from descend.inference.editor import interpolate_samples
from descend.inference.sampler import Order, Sampler
from descend.own_code import use_code
from descend.report.sheet import check_new_png, to_bytes, write_png
from descend.verbs.sample import format_rows


def interpolate(
    run: str | Path,
    seed: int = 0,
    to: int = 1,
    count: int = 8,
    order: Order | None = None,
    checkpoint: str | int = "best",
) -> Tensor:
    """Examples on the way from the first one of a seed to that of another: (count, ..), both included.

    Args:
        run: a run's folder, or a model folder.
        seed: where to begin.
        to: the seed where to end.
        count: how many examples, both ends included.
        order: class or prompt, guidance, steps, method.
        checkpoint: best, last or a step.
    """
    return interpolate_samples(Sampler.open(run, checkpoint), (seed, to), count, order or Order())


def command(
    run: str,
    /,
    *,
    seed: int = 0,
    to: int = 1,
    count: Annotated[int, tyro.conf.arg(aliases=["-n"])] = 8,
    steps: int = 0,
    guidance: float | None = None,
    method: str = "",
    label: Annotated[str, tyro.conf.arg(name="class")] = "",
    prompt: str = "",
    out: str = "",
    replace: bool = False,
    checkpoint: str = "best",
    code: str = "",
) -> None:
    """Walk from one sample to another along the random numbers that make them.

    A diffusion model should sample without fresh noise for it: --method ddim.

    Args:
        run: a run's folder, or a model folder.
        seed: where to begin: the first example of this seed.
        to: where to end: the first example of this seed.
        count: how many examples, both ends included.
        steps: of an iterative sampler; 0: the model's own number.
        guidance: how much the class or prompt counts; 1 is the conditional model itself.
        method: the sampler, e.g. ddim.
        label: the class of the examples.
        prompt: what they should show.
        out: images: the .png file for the row of them; points are printed.
        replace: write `out` anew where it exists.
        checkpoint: best, last or a step.
        code: the file of a recipe or model of your own, where it is not found by its name.

    Examples:
        descend interpolate runs/digits --seed 3 --to 7 -n 10 --method ddim --out walk.png
    """
    use_code(code)
    sampler = Sampler.open(run, checkpoint)
    path = Path(out or f"{Path(run).resolve().name}-walk.png")
    if sampler.prepare is not None:
        check_new_png(path, "--out", replace)
    x = interpolate_samples(sampler, (seed, to), count, Order(steps, guidance, method, label, prompt))
    if sampler.prepare is None:
        print("\n".join(format_rows(x)))
        return
    write_png(path, [[to_bytes(image) for image in x]], "--out")
    print(f"{len(x):,} images: {path}")
