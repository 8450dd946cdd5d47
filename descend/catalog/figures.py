"""The published figures: what was trained, on which seeds, what came out, when, where, and what others report.

`spec/figures.json` is written by `python -m proofs` together with its tables: a figure here was measured.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from descend.catalog.systems import SPEC
from descend.errors import Mistake, nearest

PATH = SPEC / "figures.json"


@dataclass(frozen=True)
class Figure:
    """A score of a recipe, over seeds."""

    claim: str
    recipe: str
    score: str
    split: str
    bar: str
    """What was demanded before it was measured."""
    seeds: tuple[int, ...]
    values: tuple[float, ...]
    mean: float
    spread: float
    """Standard deviation over the seeds."""
    seconds: tuple[float, ...]
    """Of each run."""
    date: str
    machine: str
    holds: bool = True
    flags: str = ""
    precision: str = ""
    needs: str = ""
    """Which public data it is about, where it is not embedded: see `DATA`."""
    source: str = ""
    """What others report, and where."""

    @property
    def band(self) -> tuple[float, float]:
        """Where another measurement is expected: three deviations around the mean, at least 1% of it."""
        air = max(3 * self.spread, 0.01 * abs(self.mean), 1e-9)
        return self.mean - air, self.mean + air


DATA = {
    "text": "a text file: tiny Shakespeare's 1,115,394 characters",
    "images": "the folder of MNIST's IDX files",
    "pairs": "the folder of Multi30k: train.de, train.en, val.*, test_2016_flickr.*",
    "opinions": "the folder of SST-2: train.tsv, dev.tsv, test.tsv",
    "cells": "the folder of BCCD: JPEGImages, Annotations, ImageSets/Main",
    "citations": "the folder of Cora in Planetoid's files: ind.cora.*",
}


@cache
def figures() -> tuple[Figure, ...]:
    """All of them."""
    found: list[dict[str, Any]] = json.loads(PATH.read_text(encoding="utf-8"))
    lists = ("seeds", "values", "seconds")
    read: list[dict[str, Any]] = [{k: tuple(v) if k in lists else v for k, v in one.items()} for one in found]
    return tuple(Figure(**one) for one in read)


def find_figures(recipe: str) -> list[Figure]:
    """The figures of a recipe."""
    found = [figure for figure in figures() if figure.recipe == recipe]
    if not found:
        known = sorted({figure.recipe for figure in figures()})
        raise Mistake(
            f"there is no figure of {recipe!r}.{nearest(recipe, known)} descend reproduce --list shows them all"
        )
    return found
