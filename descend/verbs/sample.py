"""descend sample: new examples from a generative model."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated

import tyro

from descend.inference.sampler import Sampler
from descend.own_code import use_code


def sample(run: str | Path, count: int = 16, seed: int = 0, checkpoint: str | int = "best") -> list[list[float]]:
    """New examples from a generative model, such as the generator of a GAN.

    Args:
        run: a run's folder, or a model folder.
        count: how many examples.
        seed: of the noise; the same seed gives the same examples.
        checkpoint: best, last or a step.
    """
    return Sampler.open(run, checkpoint).sample(count, seed).flatten(1).tolist()


def command(
    run: str,
    /,
    *,
    count: Annotated[int, tyro.conf.arg(aliases=["-n"])] = 16,
    seed: int = 0,
    checkpoint: str = "best",
    code: str = "",
    json: bool = False,
) -> None:
    """Draw new examples from a generative model; each is a line of numbers.

    Args:
        run: a run's folder, or a model folder.
        count: how many examples.
        seed: of the noise; the same seed gives the same examples.
        checkpoint: best, last or a step.
        code: the file of a recipe or model of your own, where it is not found by its name.
        json: print JSON.

    Examples:
        descend sample runs/gan-mixture -n 16
        descend sample runs/gan-mixture -n 1000 --seed 1 > points.csv
    """
    use_code(code)
    found = sample(run, count, seed, checkpoint)
    print(json_module.dumps(found) if json else "\n".join(",".join(f"{v:.6g}" for v in row) for row in found))
