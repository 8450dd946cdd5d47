"""python -m proofs.prompts RECIPE RUN: do images show what their prompt says? Judged by a network that reads scenes.

The reader is trained on generated scenes of every shape in every colour, with exact truth; its accuracy on scenes that
it has not seen is printed beside the figure. Prompts name a colour and a shape ("a picture of a red circle"): pairs
that the captions of training have, which are the claim, and pairs that they never have together, for comparison.
"""

from __future__ import annotations

import argparse
import os
import time

import torch

from descend.contracts import Wish
from descend.data.images.captions import combinations, thing
from descend.labs._scene_reader import SceneReader, read_scenes, reader_accuracy, train_scene_reader
from descend.models import load
from descend.sampling.chance import PerExample
from proofs.__main__ import Proof, outcome, record

BAR, PROMPTS, BATCH, STEPS = 0.8, 400, 100, 900


@torch.no_grad()
def measure(model: object, reader: SceneReader, pairs: list[tuple[str, str]], seed: int) -> dict[str, float]:
    """Shares of samples with the shape, the colour, and both of their prompt."""
    wanted = [pair for pair in pairs for _ in range(max(4, PROMPTS // len(pairs)))]
    found: list[tuple[str, str]] = []
    for start in range(0, len(wanted), BATCH):
        part = wanted[start : start + BATCH]
        texts = tuple(f"a picture of {thing(colour, shape)}" for shape, colour in part)
        made = model.generate(PerExample(seed, len(part), start), Wish(prompts=texts))  # type: ignore[attr-defined]
        found += read_scenes(reader, ((made + 1) / 2).clamp(0, 1))
    rows = list(zip(found, wanted, strict=True))
    return {
        "shape": sum(a[0] == b[0] for a, b in rows) / len(rows),
        "colour": sum(a[1] == b[1] for a, b in rows) / len(rows),
        "both": sum(a == b for a, b in rows) / len(rows),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proofs.prompts", description=__doc__)
    parser.add_argument("recipe")
    parser.add_argument("run", help="the folder of a trained run")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    model = load(given.run)
    side = 32
    reader = train_scene_reader(side, STEPS, 0)
    told = f"a reader with {reader_accuracy(reader, side):.1%} on held-out scenes"
    start = time.monotonic()
    known, new = (measure(model, reader, pairs, given.seed) for pairs in combinations())
    claim = f"{given.recipe} colour and shape of the prompt"
    print(f"{claim}: {known}; pairs never seen together: {new}; {told}")
    proof = Proof(claim, "both", BAR, seeds=(given.seed,), source=told)
    threads = int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1))
    record({claim: outcome(proof, [({"test": known}, time.monotonic() - start)], threads)})
    return 0 if known["both"] >= BAR else 1


if __name__ == "__main__":
    raise SystemExit(main())
