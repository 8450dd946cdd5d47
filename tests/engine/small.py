"""A language model small enough to train in a test, and a display that keeps quiet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from descend.data.text.plain import Text
from descend.engine.distributed import World
from descend.engine.fit import fit
from descend.engine.loop import Loop
from descend.engine.progress import Quiet
from descend.engine.run import Run
from descend.engine.training import Training
from descend.kinds.language import LanguageRecipe
from descend.kinds.recipe import Recipe
from descend.models.gpt2 import GPT2Config
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.weights.checkpoints import resolve_checkpoint

SENTENCES = ["the cat sat on the mat. ", "a dog ran over the hill. ", "we saw rain and wind. ", "nobody knows why. "]


def text_file(folder: Path) -> Path:
    """A few kilobytes of text, the same each time; written once, since another process may be reading it."""
    path = folder / "text.txt"
    if not path.exists():
        path.write_text("".join(SENTENCES[(i * i + i // 3) % 4] for i in range(300)), encoding="utf-8")
    return path


def small(folder: Path, **changes: object) -> Recipe:
    """A one-layer GPT-2 on that text; `changes` are for its loop."""
    loop = Loop(steps=12, batch=8, clip=1.0, eval_every=4, save_every=3, seed=3, threads=1)
    return LanguageRecipe(
        model=GPT2Config(context=16, width=16, depth=2, heads=2, dropout=0.0),
        data=Text(path=str(text_file(folder)), tokenizer="characters"),
        optim=AdamW(lr=1e-2),
        schedule=Cosine(warmup=2),
        loop=replace(loop, **changes),  # type: ignore[arg-type]
    )


def training(recipe: Recipe, dtype: torch.dtype = torch.float32) -> Training:
    """The recipe, ready to advance."""
    torch.set_num_threads(1)
    parts = recipe.build()
    parts.task.to(dtype)
    return Training(parts, recipe.loop, recipe.schedule, World())


def train(recipe: Recipe, folder: Path, resume: bool = False) -> Run:
    """The whole run, in this process."""
    torch.set_num_threads(1)
    run = Run(folder) if resume else Run.create(folder, {"name": "small"})
    fit(recipe.build(), recipe.loop, recipe.schedule, run, Quiet(), resume=resume)
    return run


def weights(run: Run) -> bytes:
    """The final weights, as they are on disk."""
    return (resolve_checkpoint(run.folder, "last") / "model.safetensors").read_bytes()
