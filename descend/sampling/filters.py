"""From logits to a choice: repetition penalty, temperature, top-k, top-p, min-p, and the draw itself.

    repetition    z_i / θ for z_i > 0, else z_i θ, if token i is in the text so far            θ = 1 no penalty
    temperature   p_i = exp(z_i / T) / Σ_j exp(z_j / T)      T = 1 the model, T → 0 the argmax, T → ∞ uniform
    top-k         keep the k most probable tokens                                    k = 1 greedy, k = V everything
    top-p         keep the smallest set of most probable tokens whose mass EXCEEDS p   p → 0 greedy, p = 1 everything
    min-p         keep the tokens with p_i ≥ m · max_j p_j                           m = 1 greedy, m = 0 everything
    draw          y ~ p, renormalised over what was kept (nothing filtered: ancestral sampling)

A filter takes logits (.., v) and returns logits (.., v) with -inf where a token is dropped, so filters compose and the
softmax renormalises by itself. T = 0 divides by zero and is the argmax by definition. They run in the order above: the
books ask for top-k before top-p, and the temperature comes first so that p is the mass of what will be drawn.

The strictness of top-p, where the books are explicit and libraries differ: of four equally probable tokens, top-p 0.5
keeps three, because two have mass 0.5, which reaches it but does not exceed it. transformers keeps two.

Systems: ancestral-sampling, temperature-sampling, top-k-sampling, top-p-sampling
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from descend.errors import Mistake


def penalise(logits: Tensor, seen: Tensor, theta: float) -> Tensor:
    """Make tokens that were seen (.., v) less probable by the factor θ on their logits."""
    return torch.where(seen, torch.where(logits > 0, logits / theta, logits * theta), logits)


def temperature(logits: Tensor, t: float) -> Tensor:
    """z / T, T > 0. The entropy of the softmax grows with T."""
    return logits / t


def top_k(logits: Tensor, k: int) -> Tensor:
    """Keep the k largest; of equal logits at the edge, as many as are needed to make k."""
    kept = logits.topk(min(k, logits.shape[-1]), dim=-1)
    return torch.full_like(logits, -math.inf).scatter(-1, kept.indices, kept.values)


def top_p(logits: Tensor, p: float) -> Tensor:
    """Keep the smallest set of most probable tokens whose mass exceeds p.

    The i-th most probable is needed as long as those before it have mass ≤ p: the first is always kept.
    """
    z, order = logits.sort(dim=-1, descending=True)
    before = torch.nn.functional.pad(z.softmax(dim=-1).cumsum(dim=-1)[..., :-1], (1, 0))
    return torch.empty_like(logits).scatter(-1, order, z.masked_fill(before > p, -math.inf))


def min_p(logits: Tensor, m: float) -> Tensor:
    """Keep what is at least m times as probable as the most probable token."""
    if not m:
        return logits
    return logits.masked_fill(logits < logits.amax(dim=-1, keepdim=True) + math.log(m), -math.inf)


@dataclass(frozen=True)
class TokenSampler:
    """How the next token is chosen from the logits. The defaults are the model's own distribution."""

    temperature: float = 1.0
    """Divides the logits; 0 takes the most probable token."""
    top_k: int = 0
    """Only the k most probable tokens; 0: all."""
    top_p: float = 1.0
    """Only the most probable tokens that together exceed this mass; 1: all."""
    min_p: float = 0.0
    """Only tokens at least this many times as probable as the best one; 0: all."""
    repetition: float = 1.0
    """Divides the logits of tokens that the text already has; 1: no penalty, above 1 fewer repetitions."""

    def __post_init__(self) -> None:
        for name, right, values in (
            ("temperature", 0 <= self.temperature < math.inf, "0 (greedy) or a positive number"),
            ("top_k", self.top_k >= 0, "0 (all tokens) or a positive count"),
            ("top_p", 0 <= self.top_p <= 1, "a probability from 0 to 1"),
            ("min_p", 0 <= self.min_p <= 1, "a share from 0 to 1"),
            ("repetition", 0 < self.repetition < math.inf, "1 (no penalty) or a positive number such as 1.2"),
        ):
            if not right:
                raise Mistake(f"{name} is {getattr(self, name)}: give {values}")

    def filter(self, logits: Tensor) -> Tensor:
        """The logits after all filters; their softmax is what `draw` draws from. Needs temperature > 0."""
        z = temperature(logits, self.temperature) if self.temperature != 1 else logits
        z = top_k(z, self.top_k) if self.top_k else z
        z = top_p(z, self.top_p) if self.top_p < 1 else z
        return min_p(z, self.min_p)

    def draw(self, logits: Tensor, generator: torch.Generator | None = None, seen: Tensor | None = None) -> Tensor:
        """One token (b,) for each row of logits (b, v); `seen` (b, v) are the tokens that the text already has."""
        if seen is not None and self.repetition != 1:
            logits = penalise(logits, seen, self.repetition)
        if self.temperature == 0:
            return logits.argmax(dim=-1)
        p = self.filter(logits).softmax(dim=-1, dtype=torch.promote_types(logits.dtype, torch.float32))
        try:
            return torch.multinomial(p, 1, generator=generator).squeeze(-1)
        except RuntimeError:
            if p.isfinite().all():
                raise
            raise Mistake("the model's logits are not numbers (NaN or infinity): its weights are damaged") from None


GREEDY = TokenSampler(temperature=0.0)
