"""descend judge: how near a generator's samples are to real images, as the network of a classifier sees them."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro

from descend.engine.run import Run
from descend.errors import Mistake
from descend.inference.judge import Judge
from descend.inference.sampler import Order, Sampler
from descend.inference.trained import BATCH
from descend.kinds.generate_images import GenerateImages
from descend.kinds.saved import read_saved
from descend.own_code import use_code

NAMES = {"fid": "Fréchet distance", "kid": "kernel distance (KID)", "precision": "precision", "recall": "recall"}


def judge(
    run: str | Path,
    by: str | Path,
    count: int = 0,
    seed: int = 0,
    order: Order | None = None,
    batch: int = BATCH,
    checkpoint: str | int = "best",
) -> dict[str, Any]:
    """Figures of a generator's samples against the test images of its data, beside those of real images.

    Args:
        run: a run of a generator of images.
        by: a run of a classifier of the same images, whose features are compared.
        count: how many samples; 0: as many as there are test images.
        seed: of the samples.
        order: how they are made: steps, method, guidance.
        batch: how many are made at a time.
        checkpoint: of the generator: best, last or a step.

    Returns:
        {"network", "n", "fid", "kid", "precision", "recall", "real_fid", .., "fid_ratio", "memorised"}
    """
    found = Run.open(run)
    recipe = read_saved(found.recipe, found.folder / "recipe.json").recipe
    if not isinstance(recipe, GenerateImages):
        raise Mistake(f"{run} is not a generator of images; judge measures those only")
    sampler, network = Sampler.open(run, checkpoint), Judge.open(by)
    splits = recipe.data.read_unlabelled()
    train, valid, test = (part.x[torch.arange(len(part.y))] for part in (splits.train, splits.valid, splits.test))
    others = torch.cat([valid, train])
    n = min(count or len(test), len(test))
    return network.report(sampler.sample(n, seed, order, batch), test, others, train)


def command(
    run: str,
    /,
    *,
    by: str,
    count: Annotated[int, tyro.conf.arg(aliases=["-n"])] = 0,
    seed: int = 0,
    steps: int = 0,
    guidance: float | None = None,
    method: str = "",
    batch: int = BATCH,
    checkpoint: str = "best",
    code: str = "",
    json: bool = False,
) -> None:
    """Measure how near a generator's samples are to real images, as the network of a classifier sees them.

    Args:
        run: a run of a generator of images.
        by: a run of a classifier of the same images, whose features are compared.
        count: how many samples; 0: as many as there are test images.
        seed: of the samples.
        steps: of an iterative sampler; 0: the model's own number.
        guidance: how much the class or prompt counts.
        method: the sampler, e.g. ddpm or ddim.
        batch: how many are made at a time: bounds the memory.
        checkpoint: of the generator: best, last or a step.
        code: the file of a recipe or model of your own, where it is not found by its name.
        json: print JSON.

    Examples:
        descend train lenet-digits --out runs/reader
        descend judge runs/digits --by runs/reader
    """
    use_code(code)
    found = judge(run, by, count, seed, Order(steps, guidance, method), batch, checkpoint)
    print(json_module.dumps(found) if json else "\n".join(format_figures(found)))


def format_figures(found: dict[str, Any]) -> list[str]:
    """Samples beside real images, and what the figures depend on."""
    lines = [f"{found['n']:,} images of each, as seen by {found['network']}", f"{'':24}{'samples':>10}{'real':>10}"]
    lines += [f"{told:24}{found[name]:>10.4g}{found[f'real_{name}']:>10.4g}" for name, told in NAMES.items()]
    lines.append(f"the Fréchet distance is {found['fid_ratio']:.3g} times that of real images")
    if "memorised" in found:
        lines.append(f"{found['memorised']:.1%} are as near to a training image as 1% of the test images")
    return lines
