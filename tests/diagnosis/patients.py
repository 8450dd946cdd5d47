"""Small runs that are broken on purpose, by causes that happen, and healthy ones: each trains in less than a second."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import torch

from descend.data.images.digits import Digits
from descend.data.streams.arrays import InOrder, Shuffled
from descend.data.tables.source import Table
from descend.data.text.plain import Text
from descend.engine.fit import fit
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.engine.progress import Quiet
from descend.engine.run import Run
from descend.errors import Mistake
from descend.kinds.images import ClassifyImages
from descend.kinds.language import LanguageRecipe
from descend.kinds.recipe import Recipe
from descend.kinds.table import LearnTable
from descend.models.gpt2 import GPT2Config
from descend.models.lenet import LeNetConfig
from descend.models.mlp import MLP, MLPConfig
from descend.optim.rules import SGD, AdamW
from descend.optim.schedules import Constant, Cosine
from descend.verbs.start import describe
from tests.engine.small import text_file


@dataclass(frozen=True)
class Sickness:
    """What is done to the parts of a recipe after they are built; the defaults do nothing."""

    bias: float = 0.0
    """Added to the biases of the hidden layers."""
    scale: float = 1.0
    """Factor on all weights."""
    nan: int = -1
    """Training example that becomes NaN."""
    copied: int = 0
    """Training examples that are the validation examples."""
    keep: int = 0
    """Training examples that are left."""


@dataclass(frozen=True)
class Patient(ClassifyImages):
    """An image classifier with a sickness."""

    sickness: Sickness = field(default_factory=Sickness)

    def build(self) -> Parts:
        parts, ill = super().build(), self.sickness
        assert isinstance(parts.stream, Shuffled)
        arrays = parts.stream.arrays
        with torch.no_grad():
            if isinstance(parts.model, MLP):
                for name, p in list(parts.model.named_parameters())[:-1]:
                    p.add_(ill.bias if name.endswith("bias") else 0.0)
            for p in parts.model.parameters():
                p.mul_(ill.scale if p.dim() > 1 else 1.0)
        if ill.nan >= 0:
            arrays["x"][ill.nan] = torch.nan
        if ill.copied:
            parts.valid = InOrder({name: tensor[: ill.copied] for name, tensor in arrays.items()})
        if ill.keep:
            kept = {name: tensor[: ill.keep] for name, tensor in arrays.items()}
            parts.stream = Shuffled(kept, min(self.loop.batch, ill.keep), self.loop.seed)
        return parts


# The margin is out of reach: no checkpoint but the first and the last is written.
LOOP = Loop(steps=100, batch=64, eval_every=10, save_every=100, threads=1, margin=1e9)


def digits(model: MLPConfig | LeNetConfig, lr: float = 2e-3, **changes: object) -> Patient:
    """Handwritten digits, 8×8."""
    recipe = Patient(model=model, data=Digits(), optim=AdamW(lr=lr), schedule=Cosine(warmup=5), loop=LOOP)
    return replace(recipe, **changes)  # type: ignore[arg-type]


def gpt2(folder: Path, lr: float, steps: int = 80) -> LanguageRecipe:
    """A small GPT-2 on a few kilobytes of text."""
    return LanguageRecipe(
        model=GPT2Config(context=16, width=32, depth=1, heads=2, dropout=0.0),
        data=Text(path=str(text_file(folder)), tokenizer="characters"),
        optim=AdamW(lr=lr),
        schedule=Cosine(warmup=10),
        loop=replace(LOOP, batch=16, steps=steps),
    )


def table(data: Table, lr: float = 5e-3, hidden: tuple[int, ...] = (32,)) -> LearnTable:
    loop = replace(LOOP, batch=32)
    return LearnTable(model=MLPConfig(hidden=hidden), data=data, optim=AdamW(lr=lr), schedule=Cosine(), loop=loop)


def rare(folder: Path) -> Table:
    """400 records, one in twenty of the second class, which the columns hardly tell."""
    path, chance = folder / "rare.csv", random.Random(0)
    rows = [
        f"{chance.gauss(0.4 * (i % 20 == 0), 1):.4f},{chance.gauss(0, 1):.4f},{'ab'[i % 20 == 0]}" for i in range(400)
    ]
    path.write_text("\n".join(["u,v,kind", *rows]), encoding="utf-8")
    return Table(path=str(path), target="kind")


def told(folder: Path) -> Table:
    """400 records; the column `closed` is the answer in other words."""
    path, chance = folder / "told.csv", random.Random(0)
    rows = []
    for _ in range(400):
        u, v = chance.gauss(0, 1), chance.gauss(0, 1)
        sold = u + v + chance.gauss(0, 1) > 0
        rows.append(f"{u:.4f},{v:.4f},{chance.uniform(1, 9) if sold else -chance.uniform(1, 9):.4f},{int(sold)}")
    path.write_text("\n".join(["u,v,closed,sold", *rows]), encoding="utf-8")
    return Table(path=str(path), target="sold", predict="classes")


WIDE, SMALL = MLPConfig(hidden=(64, 64)), MLPConfig(hidden=(1,), activations=("tanh",))
DEEP_SIGMOID = MLPConfig(hidden=(32,) * 6, activations=("sigmoid",))
SIGMOID, DEEP = MLPConfig(hidden=(64, 64), activations=("sigmoid",)), MLPConfig(hidden=(64,) * 7)
LENET = LeNetConfig(kernel=3)


def broken(folder: Path) -> dict[str, tuple[str, Recipe]]:
    """What was done -> the finding that names it, and the recipe."""
    tiny = replace(LOOP, batch=16)
    return {
        "rate of 1, MLP": ("learning-rate-too-high", digits(WIDE, lr=1.0)),
        "rate of 1, GPT-2": ("learning-rate-too-high", gpt2(folder, lr=1.0)),
        "rate of 1e-6, LeNet": ("learning-rate-too-low", digits(LENET, lr=1e-6)),
        "rate of 1e-6, GPT-2": ("learning-rate-too-low", gpt2(folder, lr=1e-6)),
        "biases of -8": ("dead-relu", digits(WIDE, sickness=Sickness(bias=-8.0))),
        "weights times 30, sigmoid": ("saturated-units", digits(SIGMOID, sickness=Sickness(scale=30.0))),
        "six sigmoid layers": ("vanishing-gradient", digits(DEEP_SIGMOID)),
        "weights times 8, seven layers": ("exploding-gradient", digits(DEEP, sickness=Sickness(scale=8.0))),
        "a NaN in record 100": ("nan", digits(WIDE, sickness=Sickness(nan=100))),
        "validation copied from training": ("leak", digits(LENET, sickness=Sickness(copied=200))),
        "a column that is the answer": ("leak", table(told(folder))),
        "40 images, wide": (
            "overfit",
            digits(MLPConfig(hidden=(512, 512)), loop=tiny, schedule=Constant(), sickness=Sickness(keep=40)),
        ),
        "one hidden unit": ("underfit", digits(SMALL, lr=1e-2)),
        "weight decay of 30": ("underfit", digits(WIDE, optim=AdamW(lr=1e-2, weight_decay=30.0))),
        "one record in twenty": ("constant-predictions", table(rare(folder), hidden=(4,), lr=1e-2)),
    }


def healthy(folder: Path) -> dict[str, Recipe]:
    """What a user would be content with."""
    return {
        "MLP on digits": digits(WIDE),
        "LeNet on digits": digits(LENET, lr=5e-3),
        "GPT-2": gpt2(folder, lr=1e-2, steps=150),
        "MLP on wine": table(Table(embedded="wine")),
        "MLP on breast cancer": table(Table(embedded="breast-cancer"), lr=2e-3),
        "MLP with momentum": digits(WIDE, optim=SGD(lr=0.05)),
        "regression": table(Table(embedded="homes")),
    }


class Plain(Run):
    """A run without TensorBoard, which takes longer to import than the training."""

    def board(self) -> Any:
        return Mock()


def trained(name: str, recipe: Recipe, folder: Path, seed: int = 0) -> Run:
    """The run of a recipe, whether it ends well or not; without the report, which takes longer than the training."""
    torch.set_num_threads(1)
    recipe = replace(recipe, loop=replace(recipe.loop, seed=seed))
    parts = recipe.build()
    Run.create(folder, describe(name, recipe, parts, threads=1))
    run = Plain(folder)
    with suppress(Mistake):  # a loss that is not finite
        fit(parts, recipe.loop, recipe.schedule, run, Quiet())
    return run
