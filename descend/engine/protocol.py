"""The two contracts of training: a Task says what a batch means, a Stream says which batch comes next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import Tensor, nn

from descend.errors import Mistake

Batch = dict[str, Tensor]
"""Named tensors whose first axis is the example. `ids` names the examples, so that a fault can say which ones."""

Move = tuple[str, Callable[[], Tensor]]
"""Who moves, and the loss as a closure: evaluated now, or several times (L-BFGS)."""


class Task(Protocol):
    """What a batch means. A task is an `nn.Module`; each name in `players` is one of its child modules.

    `moves` is a generator. Code after a `yield` runs after that player's step. No `yield` inside a `with`.
    `score` returns values per example (1-D tensors), so that the mean over any batches is exact.
    A task may have `derive(means)`: the scores of the whole set that are no means themselves, such as ratios of sums.
    """

    players: tuple[str, ...]

    def moves(self, batch: Batch) -> Iterator[Move]: ...

    def score(self, batch: Batch) -> dict[str, Tensor]: ...


class Stream(Protocol):
    """Batches without end, and where it stands: after `load_state_dict(s.state_dict())` the same batches follow.

    The state is made of tensors, numpy arrays and plain JSON values, nested in dicts and lists.
    """

    def __next__(self) -> Batch: ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class Rule(Protocol):
    """An optimizer's frozen values (`descend.optim.rules`)."""

    def build(self, module: nn.Module) -> Any: ...


class Schedule(Protocol):
    """The factor on the learning rate at a step of so many."""

    def __call__(self, step: int, steps: int) -> float: ...


@dataclass
class Parts:
    """What a recipe builds: all that `fit` needs, and what the report shows."""

    task: Any  # a Task that is also an nn.Module
    model: Any  # the model to save: one of the task's modules, with save_pretrained
    stream: Stream
    valid: Iterable[Batch]  # can be walked again and again; scored to select
    optims: dict[str, Rule]  # a rule for each player
    unit: str = "examples"  # what throughput counts, and how many of them one step has
    units_per_batch: int = 1
    facts: dict[str, Any] = field(default_factory=dict)  # data sizes and the like, for plan and report
    save_extra: Callable[[Any], None] | None = None  # files beside the model, e.g. tokenizer.json (given the folder)
    summary: Callable[[dict[str, float]], dict[str, float]] | None = None  # scores that follow from others (perplexity)
    exhibits: Callable[[], list[Exhibit]] | None = None  # what this family deserves in the report


@dataclass(frozen=True)
class Exhibit:
    """One thing to look at in the report: the kinds are those of `report/exhibits.py`."""

    kind: str
    title: str
    content: Any
    note: str = ""


@dataclass(frozen=True)
class Loop:
    """How long and how carefully to train."""

    steps: int = 1000
    """Optimizer steps in all."""
    batch: int = 32
    """Examples in a step (over all micro-batches and processes); 0: all of them, where the data is finite."""
    accumulate: int = 1
    """Micro-batches that a step is split into, to save memory."""
    clip: float = 0.0
    """Largest global gradient norm; 0: no clipping."""
    ema: float = 0.0
    """Decay of the moving average of the weights that is evaluated and saved; 0: none."""
    eval_every: int = 100
    """Steps between evaluations on the validation data."""
    save_every: int = 100
    """Steps between checkpoints."""
    watch: str = "min loss"
    """What selects the best checkpoint: min or max, and a validation score."""
    patience: int = 0
    """Stop after so many evaluations without improvement; 0: never."""
    margin: float = 0.0
    """What a score must gain on the best one to be an improvement."""
    seed: int = 0
    """Seed of everything random: weights, data order, dropout."""
    threads: int = 0
    """CPU threads; 0: chosen for the size of the work."""
    precision: str = "auto"
    """auto, float32 or bfloat16; auto takes bfloat16 only where the hardware is fast at it."""
    compile: str = "auto"
    """auto, on or off: torch.compile."""
    parallel: str = "ddp"
    """Under torchrun: ddp (copies) or fsdp (shards)."""

    def __post_init__(self) -> None:
        choices = {
            "precision": ("auto", "float32", "bfloat16"),
            "compile": ("auto", "on", "off"),
            "parallel": ("ddp", "fsdp"),
        }
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise Mistake(f"--{name} {getattr(self, name)}: choose {', '.join(known)}")
        for name in ("steps", "accumulate", "eval_every", "save_every"):
            if getattr(self, name) < 1:
                raise Mistake(f"--{name.replace('_', '-')} {getattr(self, name)}: at least 1")
        if not 0 <= self.margin < float("inf"):
            raise Mistake(f"--margin {self.margin}: at least 0")
        if self.watch.split()[:1] not in (["min"], ["max"]) or len(self.watch.split()) != 2:
            raise Mistake(f"--watch {self.watch!r}: say min or max and the score, for instance 'min loss'")

    @property
    def watched(self) -> tuple[bool, str]:
        """Whether higher is better, and the score's name."""
        direction, name = self.watch.split()
        return direction == "max", name
