"""Span corruption: spans of a text are replaced by sentinels, and the target says what they were.

    text      Thank you for inviting me to your party last week.
    input     Thank you [X] me to your [Y] week.
    target    [X] for inviting [Y] party last [Z]              closed by a sentinel that marks no span

    noise = round(rate n) tokens in round(noise / mean) spans; both these tokens and the others are cut into that many
    pieces at random places, and the pieces alternate, beginning with what stays

So every text of n tokens has the same number of corrupted tokens and spans, and a batch is a rectangle. A rate of 15%
and a mean length of 3 are the paper's (MF leaves both open). The k-th sentinel is token `first` − k, as in T5.
Which spans are drawn depends on seed, epoch and place in the text only, not on how batches are cut.

The loss is the target's Σ_s −log p(y_s | x̃, y_<s): `descend.tasks.sequence_to_sequence`.

Systems: span-corruption
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from descend.data.streams.arrays import generator
from descend.data.text.plain import Batch, Windows
from descend.errors import Mistake
from descend.ranges import Between, Range


@dataclass(frozen=True)
class SpanCorruption:
    """How much is corrupted."""

    rate: Between = 0.15
    """Share of the tokens that is corrupted."""
    mean: Annotated[float, Range(float, least=1)] = 3.0
    """Mean length of a span."""

    def __post_init__(self) -> None:
        if not 0 < self.rate < 1 or self.mean < 1:
            raise Mistake(f"rate {self.rate} and mean {self.mean}: a share between 0 and 1, and at least 1 token")

    def counts(self, n: int) -> tuple[int, int]:
        """(tokens taken out, spans) of a text of n tokens; something goes and something stays."""
        if n < 2:
            raise Mistake(f"a text of {n} tokens is too short to corrupt; give at least 2")
        noise = min(max(round(n * self.rate), 1), n - 1)
        return noise, min(max(round(noise / self.mean), 1), n - noise)

    def draw(self, u: Tensor) -> Tensor:
        """Which of n tokens go, (b, n), from uniform numbers (b, n)."""
        n = u.shape[1]
        noise, spans = self.counts(n)
        lengths = [pieces(u[:, : n - noise], spans), pieces(u[:, n - noise :], spans)]
        ends = torch.stack(lengths, dim=-1).flatten(1).cumsum(1)  # of what stays, what goes, what stays, …
        piece = torch.searchsorted(ends, torch.arange(n).expand(len(u), n).contiguous(), right=True)
        return piece % 2 == 1


def pieces(u: Tensor, count: int) -> Tensor:
    """Lengths (b, count) of pieces, each at least 1, of a row cut at random; every way to cut it is equally likely."""
    cuts = u[:, 1:].argsort(1) < count - 1  # a random permutation, so count − 1 cuts
    piece = torch.nn.functional.pad(cuts.cumsum(1), (1, 0))
    return torch.zeros(len(u), count, dtype=torch.long).scatter_add_(1, piece, torch.ones_like(piece))


def corrupt(tokens: Tensor, gone: Tensor, first: int, pad: int = 0) -> tuple[Tensor, Tensor]:
    """Input and target of texts (b, n) of which `gone` (b, n) is taken out; shorter rows are filled with `pad`."""
    starts = gone & ~torch.nn.functional.pad(gone[:, :-1], (1, 0))
    span = starts.cumsum(1)  # 1, 2, … inside the spans and after them
    spans, noise = span[:, -1:], gone.sum(1, keepdim=True)
    stays = ~gone | starts
    source = tokens.new_full((len(tokens), int(stays.sum(1).max())), pad)
    source[mark_first(source, stays.sum(1))] = tokens.where(~starts, first + 1 - span)[stays]
    target = tokens.new_full((len(tokens), int((noise + spans).max()) + 1), pad)
    row = torch.arange(len(tokens))[:, None].expand_as(tokens)
    at = gone.cumsum(1) - 1 + span  # a token stands behind the sentinels up to its own
    target[row[gone], at[gone]] = tokens[gone]
    target[row[starts], at[starts] - 1] = (first + 1 - span)[starts]
    target.scatter_(1, noise + spans, (first - spans).to(tokens.dtype))
    return source, target


def mark_first(rows: Tensor, lengths: Tensor) -> Tensor:
    """True for the first lengths[b] places of each row."""
    return torch.arange(rows.shape[1]) < lengths[:, None]


def restore(source: list[int], target: list[int], first: int) -> list[int]:
    """The text: each sentinel of the input replaced by what follows it in the target."""
    behind: dict[int, list[int]] = {}
    spans, sentinel = list(target), first
    while spans and spans[0] == sentinel:
        end = spans.index(sentinel - 1) if sentinel - 1 in spans else len(spans)
        behind[sentinel] = spans[1:end]
        spans, sentinel = spans[end:], sentinel - 1
    return [token for x in source for token in behind.get(x, [x])]


class CorruptedWindows(Windows):
    """Windows of a text with spans corrupted: x (b, s) and y (b, t), each ended by `end`. Endless, and in any order."""

    def __init__(
        self,
        tokens: Tensor,
        context: int,
        batch: int,
        seed: int,
        first: int,
        end: int,
        corruption: SpanCorruption | None = None,
    ):
        super().__init__(tokens, context, batch, seed)
        self.first, self.end, self.corruption = first, end, corruption or SpanCorruption()
        lowest = first - self.corruption.counts(context)[1]
        if int(tokens.max()) >= lowest:
            raise Mistake(f"token {int(tokens.max())} is in the text and among the sentinels {lowest}..{first}")

    def __next__(self) -> Batch:
        epochs = [(epoch, self.starts(epoch)[first:stop].clone()) for epoch, first, stop in self.cursor.advance()]
        starts = torch.cat([starts for _, starts in epochs])
        keys = [(self.seed, epoch, start) for epoch, starts in epochs for start in starts.tolist()]
        u = torch.stack([torch.rand(self.context, generator=generator(*key)) for key in keys])
        w = self.tokens[starts[:, None] + torch.arange(self.context)].long()
        x, y = corrupt(w, self.corruption.draw(u), self.first)
        return {"x": append_end(x, self.end), "y": append_end(y, self.end), "ids": starts}


def append_end(rows: Tensor, end: int) -> Tensor:
    """Rows of one length with the end token behind."""
    return torch.nn.functional.pad(rows, (0, 1), value=end)
