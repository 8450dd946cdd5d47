"""The examples themselves: spoilt ones, ones that train and validate, and how well a simple method does with them.

    chance      −Σ_k f_k log f_k for classes of frequency f_k, Var(y) for numbers: the loss of the best constant answer
    doubled     share of the validation examples (x, y) that equal a training example
    neighbours  the answer of the 5 nearest training examples
    pairs       p(y | x) from the counts of pairs of tokens, drawn towards the frequencies: (C_xy + κ f_y) / (C_x + κ)

Augmented training examples are compared as they are trained on, texts window by window: a leak behind augmentation, or
a passage that is cut at another place, is not found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from descend.contracts import Batch, Stream
from descend.diagnosis.signs import Better

MOST = 20_000  # training examples that are looked at
NUMBERS = 30_000_000  # and numbers in them: about a second
VALID = 4_000  # validation examples that are looked at
NEAR = 5  # neighbours that vote
COMPARED = (3_000, 600)  # training and validation examples of the neighbours
KAPPA = 5.0  # how many counts of a token's pairs weigh as much as the frequencies
VOCAB = 4096  # the table of pairs has the square of it
PLAIN = {"x", "y", "ids", "mask", "segments", "at", "rows", "fresh"}  # fields that add no term to a loss of x and y


@dataclass(frozen=True)
class Examples:
    """x and y of one part, laid end to end; `ids` name them. The batches that they came in have all of their fields."""

    x: Tensor
    y: Tensor
    ids: Tensor
    at: Tensor | None = None
    """Which places of y are judged; None: all of them."""
    batches: tuple[Batch, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether x and y are all that the loss looks at: no boxes, captions or noise words beside them."""
        return all(batch.keys() <= PLAIN for batch in self.batches)

    @property
    def classes(self) -> bool:
        """One class for each example."""
        return self.whole and not self.y.is_floating_point() and self.y.dim() == 1

    @property
    def tokens(self) -> bool:
        """A token for each token: the next one, a hidden one, or its tag."""
        if self.x.is_floating_point() or self.x.shape != self.y.shape or self.x.dim() != 2:
            return False
        return self.whole and (self.at is not None or bool((self.y >= 0).all()))

    @property
    def numbers(self) -> bool:
        return self.whole and self.y.is_floating_point() and self.y.dim() == 1

    def select(self, part: Tensor) -> Tensor:
        """The places of x or y that are judged, as a vector."""
        return part.flatten() if self.at is None else part[self.at]


def draw_epoch(stream: Stream) -> Examples | None:
    """An epoch of the stream, or as much of it as is looked at; the stream stands afterwards where it stood."""
    state = stream.state_dict()
    batches: list[Batch] = []
    seen: set[int] = set()
    count = size = 0
    while count < MOST and size < NUMBERS:
        batch = next(stream)
        if not {"x", "y"} <= batch.keys():
            break
        batches.append(batch)
        count, size = count + len(batch["x"]), size + batch["x"].numel()
        ids = batch["ids"].flatten().tolist() if "ids" in batch else []
        if not ids or seen.issuperset(ids):
            break
        seen.update(ids)
    stream.load_state_dict(state)
    return drop_repeats(join(batches)) if batches else None


def take_valid(valid: Any) -> Examples | None:
    """The validation examples."""
    batches: list[Batch] = []
    for batch in valid:
        if not isinstance(batch, dict) or not {"x", "y"} <= batch.keys():
            return None
        batches.append(batch)
        if sum(len(b["x"]) for b in batches) >= VALID:
            break
    return join(batches) if batches else None


def join(batches: list[Batch]) -> Examples:
    """Batches laid end to end; texts of different lengths are padded, x with 0 and y with -1."""
    x = lay_end_to_end([hide_padding(batch) for batch in batches], 0)
    y = lay_end_to_end([batch["y"] for batch in batches], -1)
    at = lay_end_to_end([batch["at"] for batch in batches], 0) if all("at" in batch for batch in batches) else None
    ids = torch.cat([batch["ids"].flatten() for batch in batches]) if "ids" in batches[0] else torch.arange(len(x))
    return Examples(x, y, ids, at, tuple(batches))


def hide_padding(batch: Batch) -> Tensor:
    """x with 0 where its mask says that there is nothing."""
    x, mask = batch["x"], batch.get("mask")
    return x if mask is None or mask.shape != x.shape else x.masked_fill(~mask, 0)


def lay_end_to_end(parts: list[Tensor], filling: int) -> Tensor:
    """Rows of all parts; matrices of different widths become as wide as the widest."""
    if all(part.shape[1:] == parts[0].shape[1:] for part in parts):
        return torch.cat(parts)
    wide = max(part.shape[1] for part in parts)
    return torch.cat([torch.nn.functional.pad(part, (0, wide - part.shape[1]), value=filling) for part in parts])


def drop_repeats(examples: Examples) -> Examples:
    """Each id once: a batch may reach over the end of an epoch. Windows of text that differ have different ids."""
    _, inverse = examples.ids.unique(return_inverse=True)
    first = torch.full((int(inverse.max()) + 1,), len(inverse), dtype=torch.long)
    first.scatter_reduce_(0, inverse, torch.arange(len(inverse)), "amin")
    rows = first.sort().values
    at = None if examples.at is None else examples.at[rows]
    return replace(examples, x=examples.x[rows], y=examples.y[rows], ids=examples.ids[rows], at=at)


def find_spoilt(examples: Examples) -> tuple[int, ...]:
    """Ids of the examples that hold a number which is none."""
    bad = torch.zeros(len(examples.x), dtype=torch.bool)
    for part in (examples.x, examples.y):
        if part.is_floating_point():
            bad |= ~part.reshape(len(part), -1).isfinite().all(dim=1)
    return tuple(examples.ids[bad].tolist())


def hash_examples(examples: Examples) -> Tensor:
    """A number for each example that equal examples share: a random linear form of the bits, modulo 2⁶⁴."""
    parts = [part.reshape(len(part), -1) for part in (examples.x, examples.y)]
    bits = [part.float().view(torch.int32) if part.is_floating_point() else part for part in parts]
    total = torch.zeros(len(examples.x), dtype=torch.long)
    for seed, part in enumerate(bits):  # padding counts nothing, so that a text is itself beside longer ones too
        random = torch.Generator().manual_seed(seed)
        factors = torch.randint(-(2**62), 2**62, (part.shape[1],), generator=random) * 2 + 1
        total += ((part.long() + seed) * factors).sum(dim=1)
    return total


def measure_overlap(train: Examples, valid: Examples) -> tuple[float, float]:
    """Share of validation examples that are training examples; share of training examples that are there twice."""
    ours, theirs = hash_examples(train), hash_examples(valid)
    _, inverse, counts = ours.unique(return_inverse=True, return_counts=True)
    twice = (counts[inverse] > 1).double().mean().item()
    return torch.isin(theirs, ours).double().mean().item(), twice


def loss_of_constant(train: Examples) -> float | None:
    """Loss of the best answer that does not look at x."""
    if train.numbers:
        return train.y.double().var(correction=0).item()
    if not (train.classes or train.tokens) or not train.select(train.y).numel():
        return None
    f = frequencies(train.select(train.y))
    return -(f * f.clamp(min=1e-30).log()).sum().item()


def frequencies(y: Tensor) -> Tensor:
    counts = torch.bincount(y.flatten()).double()
    return counts / counts.sum()


def try_simple_method(train: Examples, valid: Examples, ours: dict[str, float]) -> Better | None:
    """What the neighbours or the pairs reach on the validation examples, beside the model."""
    if train.tokens and valid.tokens and "loss" in ours and int(train.x.max()) < VOCAB:
        return Better("counting pairs of tokens", "loss", count_pairs(train, valid), ours["loss"])
    if not train.x.is_floating_point() or len(train.x) <= NEAR:
        return None
    nearest = find_neighbours(train, valid)
    if train.classes and "accuracy" in ours:
        y = train.y[nearest].mode(dim=1).values
        right = (y == valid.y[: len(y)]).double().mean().item()
        return Better(f"asking the {NEAR} nearest training examples", "accuracy", right, ours["accuracy"])
    if train.numbers and "loss" in ours:
        z = train.y[nearest].mean(dim=1)
        error = (z - valid.y[: len(z)]).double().square().mean().item()
        return Better(f"asking the {NEAR} nearest training examples", "loss", error, ours["loss"])
    return None


def find_neighbours(train: Examples, valid: Examples) -> Tensor:
    """Rows of the nearest training examples, for the first validation examples: (n, NEAR)."""
    a, b = train.x[: COMPARED[0]].flatten(1).float(), valid.x[: COMPARED[1]].flatten(1).float()
    return torch.cdist(b.nan_to_num(), a.nan_to_num()).topk(NEAR, largest=False).indices


def count_pairs(train: Examples, valid: Examples) -> float:
    """Mean −log p(y | x) of the table of pairs, on the validation tokens that are judged."""
    (x, y), (asked, true) = ((part.select(part.x), part.select(part.y)) for part in (train, valid))
    size = int(max(part.max() for part in (x, y, asked, true))) + 1
    counts = torch.bincount(x * size + y, minlength=size * size).view(size, size).double()
    f = (counts.sum(dim=0) + 1) / (counts.sum() + size)
    p = (counts + KAPPA * f) / (counts.sum(dim=1, keepdim=True) + KAPPA)
    return -p[asked, true].log().mean().item()


def rate_columns(train: Examples, columns: dict[str, list[int]]) -> tuple[tuple[str, float], ...]:
    """For every column of a table: the share of a constant answer's errors that vanish if one knows it alone.

    For classes by a tree on this column's inputs with as many leaves as classes; for numbers by Spearman's ρ².
    """
    x = train.x.double().nan_to_num().numpy()
    if train.classes and len(columns) > 1:
        return tuple((name, measure_explained(x[:, inputs], train.y)) for name, inputs in columns.items())
    if train.numbers and len(columns) > 1:
        from scipy.stats import spearmanr

        alone = {name: inputs[0] for name, inputs in columns.items() if len(inputs) == 1 and x[:, inputs[0]].std() > 0}
        y = train.y.numpy()
        return tuple((name, float(spearmanr(x[:, j], y).statistic) ** 2) for name, j in alone.items())
    return ()


def measure_explained(x: Any, y: Tensor) -> float:
    """1 − errors of the tree / errors of the most frequent class."""
    from sklearn.tree import DecisionTreeClassifier

    wrong = 1 - float(frequencies(y).max())
    tree = DecisionTreeClassifier(max_leaf_nodes=max(2, len(y.unique())), random_state=0).fit(x, y.numpy())
    return 1 - (1 - float(tree.score(x, y.numpy()))) / wrong if wrong else 0.0


def take_batches(examples: Examples, count: int) -> Iterator[Batch]:
    """The batches, as they came, of the first `count` examples."""
    seen = 0
    for batch in examples.batches:
        if seen >= count:
            return
        yield batch
        seen += len(batch["x"])
