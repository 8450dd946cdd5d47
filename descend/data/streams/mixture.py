"""A mixture of sources by shares, which change from stage to stage of a training.

    p_s = (p_s1, .., p_sm),  Σ_i p_si = 1              the shares of stage s
    source of example j = the i with P_i−1 ≤ u_j < P_i,   P the running sum of p_s
    u_j = (π(j mod M) + ξ) / M                         π a permutation of 0..M−1 and ξ in 0..1, new for each M examples

The u of a block lie evenly, so that of every M = 1000 examples each source gives M p_i, up to one: where M p_i is a
whole number, exactly as many. Which source comes is a function of seed, stage and place, and each source goes through
its own epochs: example number k of source i is the same whoever asks for it. So micro-batches and processes share one
mixture, and the whole state is the place and how many each source has given.

    by size and temperature        p_i = n_i^(1/τ) / Σ_j n_j^(1/τ)         τ = 1: as they lie; τ → ∞: all alike

LLaMA's percentages are such shares (MF 39.7; they sum to 100). That they are shares of the *sampling*, not of the bytes
on disk, is how their paper uses them: a small source with a large share comes more than once.

Systems: data-mixture-sampler
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from descend.contracts import Batch
from descend.data.streams.batches import count_examples, join_batches, take_examples
from descend.errors import Mistake, nearest
from descend.seeds import generator

BLOCK = 1000  # examples among which the shares hold
CLOSE = 1e-6  # how near to 1 or 100 shares must sum


class Source(Protocol):
    """What can be mixed: examples in an endless order, asked for by number (`Shuffled`, `ByLength`, `Windows`)."""

    def take(self, start: int, stop: int) -> Batch: ...


@dataclass(frozen=True)
class Stage:
    """The shares of a part of the training, by the names of the sources; those that are not named give nothing."""

    shares: Mapping[str, float]
    until: int = 0
    """The example that it ends before; 0: it does not end."""


def check_shares(shares: Mapping[str, float], names: Sequence[str], flag: str = "--data.shares") -> Tensor:
    """p (m) in the order of `names`; shares are told so that they sum to 1, or to 100."""
    for name, share in shares.items():
        if name not in names:
            raise Mistake(f"{flag}: there is no source {name!r}.{nearest(name, names)} Sources: {', '.join(names)}")
        if not 0 <= share < math.inf:
            raise Mistake(f"{flag} {name}={share:g}: a share is 0 or more")
    total = math.fsum(shares.values())
    whole = next((whole for whole in (1, 100) if abs(total - whole) <= CLOSE * whole), 0)
    if not whole:
        raise Mistake(f"{flag}: the shares sum to {total:g}; let them sum to 1 (or to 100, as percentages)")
    return torch.tensor([shares.get(name, 0.0) / whole for name in names], dtype=torch.float64)


def share_by_size(sizes: Mapping[str, float], temperature: float = 1.0) -> dict[str, float]:
    """p_i = n_i^(1/τ) / Σ_j n_j^(1/τ)"""
    empty = [name for name, size in sizes.items() if size <= 0]
    if empty:
        raise Mistake(f"the source {empty[0]!r} is empty; leave it out")
    if not temperature > 0:
        raise Mistake(f"--data.temperature {temperature:g}: must be above 0")
    p = (torch.tensor([math.log(size) for size in sizes.values()], dtype=torch.float64) / temperature).softmax(0)
    return dict(zip(sizes, p.tolist(), strict=True))


def choose_sources(p: Tensor, start: int, stop: int, *key: int) -> Tensor:
    """The source of each of the examples start, .., stop − 1 of a stage with the shares p; `key` is its seed."""
    edges = p.cumsum(0)
    edges[int(p.nonzero()[-1]) :] = 1.0  # rounding leaves nothing to a source without a share
    found = []
    for block in range(start // BLOCK, (max(stop - 1, start)) // BLOCK + 1):
        random = generator(*key, block)
        u = torch.randperm(BLOCK, generator=random) + torch.rand(1, generator=random, dtype=torch.float64)
        found.append(torch.searchsorted(edges, u / BLOCK, right=True))
    first = start // BLOCK * BLOCK
    return torch.cat(found)[start - first : stop - first]


class Mixture:
    """An endless stream of batches drawn from named sources by the shares of the stage.

    Each example says where it is from: `source` (b), the number of its source, and `stage` (b). `join` makes one batch
    of the pieces (of sources whose rows differ in length it also pads them).
    """

    def __init__(
        self,
        sources: Mapping[str, Source],
        stages: Sequence[Stage],
        batch: int,
        seed: int = 0,
        rank: int = 0,
        world: int = 1,
        join: Callable[[list[Batch]], Batch] = join_batches,
    ):
        if batch % world:
            raise Mistake(f"--batch {batch} does not divide evenly among {world} processes; use a multiple of {world}")
        self.names, self.sources, self.join = list(sources), list(sources.values()), join
        self.stages = check_stages(stages)
        self.shares = [check_shares(stage.shares, self.names) for stage in stages]
        self.batch, self.share, self.seed, self.rank = batch, batch // world, seed, rank
        self.place, self.drawn = 0, [0] * len(self.sources)

    def choose(self, start: int, stop: int) -> tuple[Tensor, Tensor]:
        """(source, stage) of the examples start, .., stop − 1 of the whole training."""
        sources, stages, begin = [torch.empty(0, dtype=torch.long)], [torch.empty(0, dtype=torch.long)], 0
        for number, (stage, p) in enumerate(zip(self.stages, self.shares, strict=True)):
            end = stage.until or stop
            first, last = max(start, begin), min(stop, end)
            if first < last:
                sources.append(choose_sources(p, first - begin, last - begin, self.seed, number))
                stages.append(torch.full((last - first,), number))
            begin = end
        return torch.cat(sources), torch.cat(stages)

    def __next__(self) -> Batch:
        source, stage = self.choose(self.place, self.place + self.batch)
        mine = slice(self.rank * self.share, (self.rank + 1) * self.share)
        pieces, rows = [], []
        for i, one in enumerate(self.sources):
            here = source[mine] == i
            first = self.drawn[i] + int((source[: mine.start] == i).sum())
            if count := int(here.sum()):
                pieces.append(one.take(first, first + count))
                rows.append(here.nonzero()[:, 0])
            self.drawn[i] += int((source == i).sum())
        self.place += self.batch
        joined = self.join(pieces)
        found = take_examples(joined, torch.cat(rows).argsort())  # back into the order in which they were chosen
        assert count_examples(found) == self.share
        return {**found, "source": source[mine], "stage": stage[mine]}

    def state_dict(self) -> dict[str, Any]:
        return {"place": self.place, "drawn": dict(zip(self.names, self.drawn, strict=True))}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if set(state["drawn"]) != set(self.names):
            raise Mistake(
                f"the checkpoint mixes {', '.join(state['drawn'])}, not {', '.join(self.names)}; "
                f"resume with the sources that the run was started with"
            )
        self.place, self.drawn = state["place"], [state["drawn"][name] for name in self.names]


def check_stages(stages: Sequence[Stage]) -> list[Stage]:
    """Stages that end one after the other; the last one does not."""
    if not stages:
        raise Mistake("a mixture needs the shares of at least one stage: --data.shares")
    *earlier, last = stages
    ends = [stage.until for stage in earlier]
    if any(a >= b for a, b in zip([0, *ends], ends, strict=False)):
        raise Mistake("the stages of a mixture must end one after the other, each later than the one before")
    return [*earlier, Stage(last.shares)]


def describe_mixture(mixture: Mixture, sizes: Mapping[str, int], examples: int) -> dict[str, str]:
    """What a run tells: of every source, its share in each stage, and how often the run of so many examples goes
    through its `sizes` examples."""
    bounds = [0, *(min(stage.until or examples, examples) for stage in mixture.stages)]
    told = {}
    for i, name in enumerate(mixture.names):
        shares = [float(p[i]) for p in mixture.shares]
        given = sum(p * max(b - a, 0) for p, a, b in zip(shares, bounds, bounds[1:], strict=False))
        percent = ", then ".join(f"{100 * p:.3g}%" for p in shares)
        told[f"source {name}"] = f"{percent}; {given / sizes[name]:.3g} epochs of {sizes[name]:,}"
    return told
