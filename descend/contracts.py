"""What the parts of descend promise each other. Everything above imports these names; nothing here imports descend.

    Batch    named tensors of some examples
    Move     who moves, the loss as a closure, and what the loss is a mean of
    Task     what a batch means: `moves` to learn from it, `score` to judge it
    Stream   which batch comes next, and where it stands
    Exhibit  one thing to look at in a report
    Wish     what is asked of a model that makes new examples, and Chance, the random numbers that it makes them of

A step may be split into micro-batches and among processes. What it minimises does not change by that:

    L = Σ_k  Σ_i s_ki / Σ_i n_ki        term k of part i: a mean m_ki over its n_ki units, s_ki = n_ki m_ki

so the engine weighs each part's mean by n_ki / Σ_i n_ki. Where the unit is the example, the parts are equal in size.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

from torch import Tensor, nn

Batch = dict[str, Tensor]
"""Named tensors whose first axis is the example. `ids` names the examples, so that a fault can say which ones.

What differs in number from example to example (boxes, nodes, edges) is padded with -1, or laid end to end: then
`nodes` (n, ..) has `nodes_owner` (n), the example in 0..b-1 that each item belongs to, in order. Items are numbered
within their example, so that a batch can be cut and joined (`data/streams/batches.py`)."""

OWNER = "_owner"
"""`x_owner` says that `x` is laid end to end."""


@dataclass(frozen=True)
class Loss:
    """What a closure found, when it is more than one number. The sum of the terms is minimised."""

    terms: dict[str, Tensor]
    """Name -> a mean over the term's units, its weight (λ, β, -c) included. They are logged by name."""
    told: dict[str, Tensor] = field(default_factory=dict)
    """Name -> what was measured on the way and is not minimised (KL, clip fraction); a mean over examples."""

    def total(self) -> Tensor:
        """Σ_k of the terms."""
        first, *others = self.terms.values()
        return sum(others, first)


EVERY = "*"
"""In `Move.units`: every term that is not named."""


class Move(NamedTuple):
    """Who moves, and the loss as a closure: evaluated now, or several times (L-BFGS)."""

    player: str
    loss: Callable[[], Tensor | Loss]
    units: Mapping[str, Tensor] = {}
    """Term -> n, the units that it is a mean of, where they are not the examples (tokens, boxes, pairs). A loss without
    terms is called "loss"; EVERY stands for all terms. A mean over n = 0 units must be 0."""

    def value(self) -> Loss:
        """The loss of this batch alone."""
        return as_loss(self.loss())


class JointMove(NamedTuple):
    """A move whose loss compares the examples of a batch with each other, so that it is no mean over them.

    The engine encodes every part of a step, brings the codes together, and takes the loss of all of them: its value and
    gradient are those of the whole batch however it is split.
    """

    player: str
    encode: Callable[[], dict[str, Tensor]]
    """Name -> one row for each example (b, ..)."""
    compare: Callable[[dict[str, Tensor]], Tensor | Loss]
    """The loss of the codes of a whole step."""

    def value(self) -> Loss:
        """The loss of this batch alone."""
        return as_loss(self.compare(self.encode()))


def as_loss(found: Tensor | Loss) -> Loss:
    """A loss with its terms; a single number is the term "loss"."""
    return found if isinstance(found, Loss) else Loss({"loss": found})


class Task(nn.Module, ABC):
    """What a batch means. Each name in `players` is one of its child modules, trained by an optimizer of its own.

    `moves` is a generator. Code after a `yield` runs after that player's step. No `yield` inside a `with`.
    `score` returns one value for each example or unit (1-D tensors), so that the mean over any batches is exact.

    Scores of a whole set that are no means over its examples (mean IoU, BLEU, mAP, perplexity) are the work of `judge`.
    What `score` gives under a name in `evidence` is collected, not averaged: tensors end to end, lists appended.
    `judge` sees it once, with the means of everything else, and returns all scores to report.

    Parts that never change (teacher, reference, reward model, base) are named in `frozen`. They are kept out of
    checkpoints; the run knows them by the checksum of their tensors.
    """

    players: tuple[str, ...] = ("model",)
    evidence: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()

    @abstractmethod
    def moves(self, batch: Batch) -> Iterator[Move | JointMove]: ...

    @abstractmethod
    def score(self, batch: Batch) -> Mapping[str, Any]: ...

    def judge(self, means: dict[str, float], evidence: dict[str, Any]) -> dict[str, float]:
        """The scores of a set."""
        return means


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


@dataclass(frozen=True)
class Exhibit:
    """One thing to look at in the report: the kinds are those of `report/exhibits.py`."""

    kind: str
    title: str
    content: Any
    note: str = ""


@runtime_checkable
class Chooses(Protocol):
    """A task that chooses among classes."""

    def choices(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Logits (n, classes) and true classes (n) of what a batch asks."""


@runtime_checkable
class HasFeatures(Protocol):
    """A model that turns an input into the vectors before its head."""

    def features(self, x: Tensor) -> Tensor: ...


class JointEncoder(Protocol):
    """A model that puts images and texts into one space; e^scale is the inverse temperature of their comparison."""

    scale: nn.Parameter

    def encode_image(self, x: Tensor) -> Tensor: ...

    def encode_text(self, tokens: Tensor) -> Tensor: ...

    def logits(self, images: Tensor, texts: Tensor) -> Tensor: ...


class TwoHeaded(Protocol):
    """A classifier with a second head that learns from a teacher."""

    def both(self, x: Tensor) -> tuple[Tensor, Tensor]: ...

    def __call__(self, x: Tensor) -> Tensor: ...


class CarriesState(Protocol):
    """A language model that carries a state from one piece of text to the next."""

    def start(self, batch: int) -> Tensor: ...

    def carry(self, tokens: Tensor, state: Tensor) -> tuple[Tensor, Tensor]: ...

    def __call__(self, tokens: Tensor) -> Tensor: ...


@runtime_checkable
class EncodesTokens(Protocol):
    """A model that turns tokens (b, t) into vectors (b, t, d), for at most `longest` tokens."""

    @property
    def longest(self) -> int: ...

    def hidden(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor: ...


@runtime_checkable
class HasDecoder(Protocol):
    """A model that writes on from a text: `decoder()` starts one."""

    def decoder(self) -> Any: ...


@runtime_checkable
class AnswersSource(Protocol):
    """A model that reads a source text and writes another: `decoder` takes the source tokens and their mask."""

    def encode(self, source: Tensor, mask: Tensor) -> Any: ...

    def decoder(self, source: Tensor, mask: Tensor) -> Any: ...


class Boxes(NamedTuple):
    """Objects of b images, padded to the same number m; what pads has class −1 and score 0."""

    boxes: Tensor
    """x0, y0, x1, y1 in pixels of the model's input (b, m, 4)."""
    classes: Tensor
    """(b, m)"""
    scores: Tensor
    """(b, m); 1 for what is true."""


@runtime_checkable
class Detects(Protocol):
    """A model that finds objects: its forward gives all that its loss needs, `decode` makes objects of that, the best
    first, at most `most` of an image, none below the score `least`. `stride` divides the sides of its input."""

    stride: int

    def __call__(self, x: Tensor) -> Any: ...

    def decode(self, found: Any, least: float = 0.001, most: int = 100) -> Boxes: ...


class Criterion(Protocol):
    """The loss of a detector: what its forward found, and the true objects -> terms.

    Every term is a sum divided by `count_units(truth)`, so that a step may be split (see `Move.units`). A criterion
    that samples (regions, noise) says how many random numbers it needs of each image; they come with the batch, as
    `u` (b, chance) in 0..1."""

    chance: int

    def __call__(self, found: Any, truth: Boxes, u: Tensor) -> Loss: ...


def count_units(truth: Boxes) -> Tensor:
    """Σ over images of max(1, objects): what the terms of a detector's loss are means of, the same however it assigns
    objects to predictions, and never 0."""
    return (truth.classes >= 0).sum(dim=1).clamp_min(1).sum()


class Chance(Protocol):
    """The random numbers of `count` new examples. Each example has its own, so that one of a batch can be made again,
    alone or in another batch; two calls give different numbers."""

    @property
    def count(self) -> int: ...

    def normal(self, *shape: int) -> Tensor:
        """N(0, 1) of this shape for each example: (count, *shape)."""
        ...

    def uniform(self, *shape: int) -> Tensor:
        """The same, uniform in 0..1."""
        ...


@dataclass(frozen=True)
class Wish:
    """What is asked of a model that makes new examples. What is left out is the model's own choice."""

    steps: int = 0
    """Steps of an iterative sampler."""
    guidance: float | None = None
    """γ: how much the condition counts; 1 is the conditional model itself."""
    method: str = ""
    """The name of the sampler: ddpm, ddim, .."""
    classes: Tensor | None = None
    """The class of each example (count)."""
    prompts: tuple[str, ...] = ()
    """A text for each example (count)."""


@runtime_checkable
class Generates(Protocol):
    """A model that makes new examples, as standardized as those that it learned from."""

    offers: frozenset[str]
    """Which of the fields of a wish it understands."""

    def generate(self, chance: Chance, wish: Wish) -> Tensor: ...


@runtime_checkable
class HasCodes(Protocol):
    """A model that turns images of −1..1 into codes, and codes into images; `image` is their channels and sides."""

    @property
    def image(self) -> tuple[int, int, int]: ...

    def to_latent(self, x: Tensor) -> Tensor: ...

    def from_latent(self, z: Tensor) -> Tensor: ...


@runtime_checkable
class PlansActions(Protocol):
    """A policy: of what is seen of b scenes (`state` (b, s), and `image` (b, 3, h, w) in 0..1 and `tokens` (b, l) where
    it takes them) it makes the next actions (b, chunk, actions)."""

    @property
    def chunk(self) -> int: ...

    def plan(self, seen: Batch, chance: Chance) -> Tensor: ...
