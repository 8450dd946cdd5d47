"""Random numbers beside the examples of a stream: noise, times, dropped conditions. In training, randomness is data.

    example number k of a stream has the numbers of row k mod p in block ⌊k / p⌋: draw(generator(seed, ⌊k / p⌋), p)

so they depend neither on how the stream is cut into batches nor on the number of processes, nor on where it was
resumed. p is a power of two that follows from how many numbers an example has; a block is drawn at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from descend.contracts import Batch, Stream
from descend.seeds import generator

Draw = Callable[[torch.Generator, int], dict[str, Tensor]]
BLOCK = 2**20  # numbers of a block, about
APART = 2**32  # keeps these seeds apart from those of the order


class Blocks:
    """The numbers of examples 0, 1, 2, .., drawn block by block."""

    def __init__(self, draw: Draw, seed: int):
        self.draw, self.seed = draw, seed + APART
        one = sum(tensor.numel() for tensor in draw(generator(self.seed), 1).values())
        self.rows = max(1, 2 ** (BLOCK // max(one, 64)).bit_length() // 2)
        self._block: tuple[int, dict[str, Tensor]] = (-1, {})

    def take(self, start: int, stop: int) -> dict[str, Tensor]:
        """The numbers of the examples from start to stop."""
        pieces = []
        while start < stop:
            number, first = divmod(start, self.rows)
            last = min(self.rows, first + stop - start)
            pieces.append({name: tensor[first:last] for name, tensor in self.block(number).items()})
            start += last - first
        return {name: torch.cat([piece[name] for piece in pieces]) for name in pieces[0]} if pieces else {}

    def block(self, number: int) -> dict[str, Tensor]:
        """A whole block, kept until another is asked for."""
        if self._block[0] != number:
            self._block = number, self.draw(generator(self.seed, number), self.rows)
        return self._block[1]


class Beside:
    """The batches of a stream, with random numbers for each example: other ones each time that it comes."""

    def __init__(self, source: Stream, draw: Draw, seed: int, rank: int = 0, world: int = 1):
        self.source, self.blocks, self.rank, self.world = source, Blocks(draw, seed), rank, world
        self.place = 0

    def __next__(self) -> Batch:
        batch = next(self.source)
        n = len(batch["ids"])
        start = self.place + self.rank * n
        self.place += n * self.world
        return {**batch, **self.blocks.take(start, start + n)}

    def state_dict(self) -> dict[str, Any]:
        return {"source": self.source.state_dict(), "place": self.place}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.source.load_state_dict(state["source"])
        self.place = state["place"]


class BesideOnce:
    """Batches that are walked again and again, with the same random numbers each time: for validation and test.

    `draw` sees a whole block, so it may stratify: spread times evenly over the examples of a block.
    """

    def __init__(self, batches: Iterable[Batch], draw: Draw, seed: int = 0):
        self.batches, self.blocks = batches, Blocks(draw, seed)

    def __iter__(self) -> Iterator[Batch]:
        place = 0
        for batch in self.batches:
            n = len(batch["ids"])
            yield {**batch, **self.blocks.take(place, place + n)}
            place += n


def spread_evenly(n: int, random: torch.Generator) -> Tensor:
    """n numbers in 0..1, one in each of n equal intervals, in random order: their mean has less variance."""
    return (torch.randperm(n, generator=random) + torch.rand(n, generator=random)) / n
