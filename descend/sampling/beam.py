"""Beam search: keep the B most probable beginnings, instead of one (greedy) or all (exhaustive).

    log p(y_1 … y_n) = Σ_i log p(y_i | y_<i)
    score(y_1 … y_n) = log p(y_1 … y_n) / n^α             n counts the new tokens, the stop token too

    extend every one of the B hypotheses by all K tokens, keep the best B of these B K by log p
    one that ends in a stop token leaves the beam and is kept by its score; at the end the best score wins

All hypotheses in the beam have the same length, so dividing by n^α changes nothing there; it decides between finished
ones of different lengths, since every further factor makes a product smaller. α = 0: plain log p, α = 1: mean log p per
token. The books ask for the normalisation without spelling it out; this is the form of transformers' length_penalty.

The books also say that extending by all tokens gives "up to B²" hypotheses: it gives B K (6, not 4, for B = 2 in their
tree of K = 3), which is what their cost O(B K N) counts. B² are left if each keeps its best B continuations first, and
the new beam is the same: no hypothesis can place more than B of its own among the best B. With stop tokens it is 2 B
candidates that matter, as up to B of them may end.

B = 1 is greedy search; B = K^(N-1) is exhaustive. The search ends when no hypothesis still open can beat the finished
ones: log p only falls, so the best one could become is log p now over the greatest length^α.

Systems: beam-search
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.sampling.decoder import Decoder, Prompts, begin
from descend.sampling.sequence import log_softmax


@dataclass(frozen=True)
class Hypothesis:
    """A continuation that beam search found."""

    tokens: list[int]
    log_p: float
    """Σ log p(y_i | y_<i)"""
    score: float
    """log_p / length^α"""


def beam_search(
    decoder: Decoder,
    prompts: Prompts,
    beams: int = 4,
    tokens: int = 64,
    alpha: float = 1.0,
    stop: Collection[int] = (),
) -> list[list[Hypothesis]]:
    """The best hypotheses of each prompt, best first, at most `beams` of them."""
    if beams < 1 or alpha < 0:
        raise Mistake(f"beams is {beams} and alpha is {alpha}: give at least 1 beam and an alpha of 0 or more")
    beam = Beam(begin(decoder, prompts, tokens), beams, tokens, alpha, stop)
    decoder.reorder(beam.first_rows())
    for n in range(1, tokens + 1):
        rows = beam.extend(n)
        if n == tokens or beam.is_settled():
            break
        decoder.reorder(rows)
        beam.read(decoder.step(beam.y[:, :, n - 1].flatten()))
    return beam.best(n)


class Beam:
    """The open and the finished hypotheses of b prompts, B each, as tensors."""

    def __init__(self, logits: Tensor, beams: int, tokens: int, alpha: float, stop: Collection[int]):
        b, device = len(logits), logits.device
        self.beams, self.alpha, self.tokens = beams, alpha, tokens
        self.stops = torch.tensor(sorted(stop), dtype=torch.long, device=device)
        self.y = torch.full((b, beams, tokens), -1, device=device)
        self.next_log_p = log_softmax(logits)[:, None].expand(-1, beams, -1)
        nothing = self.next_log_p.new_full((b, beams), -math.inf)
        self.log_p = nothing.clone()
        self.log_p[:, 0] = 0.0  # one beginning, not B copies of it
        self.ended_y, self.ended_log_p, self.ended_score = self.y, nothing, nothing

    def first_rows(self) -> Tensor:
        """Every prompt's row, B times."""
        return torch.arange(len(self.y), device=self.y.device).repeat_interleave(self.beams)

    def read(self, logits: Tensor) -> None:
        """log p(y | hypothesis) for every open hypothesis."""
        self.next_log_p = log_softmax(logits).view(*self.log_p.shape, -1)

    def extend(self, n: int) -> Tensor:
        """The n-th token of every hypothesis; returns which row of the decoder each one continues (b·B,)."""
        v = self.next_log_p.shape[-1]
        everything = (self.log_p[:, :, None] + self.next_log_p).flatten(1)  # (b, B K)
        log_p, best = everything.topk(min(2 * self.beams, everything.shape[1]), dim=1)
        parent, token = best // v, best % v
        y = self.y.gather(1, parent[:, :, None].expand(-1, -1, self.tokens))
        y[:, :, n - 1] = token
        ends = torch.isin(token, self.stops)
        self.finish(y[:, : self.beams], log_p[:, : self.beams].where(ends[:, : self.beams], -math.inf), n)
        log_p = log_p.masked_fill(ends, -math.inf)
        self.log_p, kept = log_p.topk(self.beams, dim=1)
        self.y = y.gather(1, kept[:, :, None].expand(-1, -1, self.tokens))
        first = torch.arange(len(y), device=y.device)[:, None] * self.beams
        return (first + parent.gather(1, kept)).flatten()

    def finish(self, y: Tensor, log_p: Tensor, n: int) -> None:
        """Keep the B best scores among the finished hypotheses and these, which end with their n-th token."""
        score = torch.cat([self.ended_score, log_p / n**self.alpha], dim=1)
        self.ended_score, kept = score.topk(self.beams, dim=1)
        self.ended_log_p = torch.cat([self.ended_log_p, log_p], dim=1).gather(1, kept)
        self.ended_y = torch.cat([self.ended_y, y], dim=1).gather(1, kept[:, :, None].expand(-1, -1, self.tokens))

    def is_settled(self) -> bool:
        """Whether no open hypothesis of any prompt could still enter the finished ones."""
        reachable = self.log_p.amax(1) / self.tokens**self.alpha
        return bool((reachable <= self.ended_score.amin(1)).all())

    def best(self, n: int) -> list[list[Hypothesis]]:
        """Finished hypotheses, and those that the length limit ended after n tokens."""
        if n == self.tokens:
            self.finish(self.y, self.log_p, n)
        found = []
        for y, log_p, score in zip(self.ended_y, self.ended_log_p.tolist(), self.ended_score.tolist(), strict=True):
            rows = zip(y, log_p, score, strict=True)
            found.append([Hypothesis(t[t >= 0].tolist(), p, s) for t, p, s in rows if p > -math.inf])
        return found
