"""What every recipe is: frozen values that say what to train, and `build`, which makes the parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

import tyro

from descend.contracts import Batch, Exhibit, Task
from descend.data.streams.shards import process
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.origin import find_files
from descend.ranges import check


class Judged(NamedTuple):
    """What judges a trained model, and the labelled data that it is judged by."""

    task: Task
    batches: Iterable[Batch]
    exhibits: Callable[[], list[Exhibit]] | None = None
    """What there is to look at, where it is more than scores."""


@dataclass(frozen=True)
class Recipe:
    """Leaf values are flags (`--optim.lr 3e-4`); structure is Python (`replace(RECIPE, optim=SGD())`)."""

    about: tyro.conf.Suppress[str] = ""
    parameters: tyro.conf.Suppress[int] = 0  # of the model with the recipe's own data; a test counts them
    takes: tyro.conf.Suppress[str] = ""  # time of a run, measured on two cores
    model: Any = None
    data: Any = None
    optim: Any = None
    schedule: Any = None
    loop: Annotated[Loop, tyro.conf.arg(name="")] = field(default_factory=Loop)
    package: ClassVar[str] = ""
    """What embedded data are part of; "python" for its documentation and sources."""

    def __post_init__(self) -> None:
        check(self)

    def build(self) -> Parts:
        """Read the data, make the model and the task. Nothing is trained yet."""
        raise NotImplementedError

    def test(self) -> Iterable[Batch]:
        """The held-out batches that report once; none where the data has no third part."""
        return ()

    def judge(self, path: str, model: Any, folder: Path) -> Judged:
        """New labelled data in the format of --data.path, the whole of it: read with the columns, tokenizer and classes
        in the folder of the trained model, and nothing fitted anew."""
        raise Mistake(f"--data.path {path}: a run of this kind ({type(self).__name__}) is not judged by new data")

    def baseline(self) -> Recipe | None:
        """The recipe that a run of this one is to be compared with, trained as long; None where none is asked for."""
        return None

    def files(self) -> dict[str, Path]:
        """The user's files that the data are read from, by name."""
        return find_files(self.data)

    def packages(self) -> tuple[str, ...]:
        """The packages that the data are part of, where they are no files of the user's."""
        return (self.package,) if self.package and not self.files() else ()


def fit_batch(loop: Loop, examples: int) -> int:
    """Examples in a step: as many as --batch asks for, and no more than there are (0 asks for all).

    Where there are fewer, they are as many as the micro-batches of all processes share evenly.
    """
    if examples < 1:
        raise Mistake("the data is empty: there is no example to train on; check --data.path")
    if 0 < loop.batch <= examples:
        return loop.batch
    parts = loop.accumulate * process()[1]
    return max(parts, examples // parts * parts)


def describe_batch(loop: Loop, batch: int) -> dict[str, Any]:
    """The fact to tell where a step sees fewer examples than --batch asks for; none where it does not."""
    return (
        {"batch": f"{batch} instead of {loop.batch}: there are no more training examples"} if batch < loop.batch else {}
    )


def micro_batch(loop: Loop, batch: int) -> int:
    """Examples in each of a step's micro-batches."""
    if batch % loop.accumulate:
        raise Mistake(f"--batch {batch} does not divide into --accumulate {loop.accumulate} micro-batches")
    return batch // loop.accumulate


def require_replicas(parallel: str) -> tuple[int, int]:
    """(rank, world); every process acts with the whole model, so it cannot be sharded."""
    rank, world = process()
    if world > 1 and parallel == "fsdp":
        raise Mistake("--parallel fsdp: a policy acts between the steps and needs all its weights; use --parallel ddp")
    return rank, world
