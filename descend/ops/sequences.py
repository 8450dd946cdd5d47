"""Sequences of different lengths in one batch, and the flat forms that fixed windows see.

    x⁽¹⁾ … x⁽ᵀ⁾, x⁽ᵗ⁾ ∈ ℝᵈ, T differs between examples:   rows (b, t, d), zeros after each end, and lengths (b)
    MF stacks the m sequences of a batch as COLUMNS: X⁽ᵗ⁾ (d, m) is the transpose of our rows at t

    window of n words      concat(onehot(w_1) … onehot(w_n))       n V numbers
    flat sentence          the same, cut or filled with zeros up to T_max words

Padding stands on the right and is never read: a recurrent net starts at h⁽⁰⁾ = 0 and its answer is h at the last real
step, h⁽ᵀ⁾, which `last` takes.

Systems: sequence-batching
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor


def pad(sequences: Sequence[Tensor], value: float = 0) -> tuple[Tensor, Tensor]:
    """Sequences (t_i, …) -> rows (b, t, …) filled up on the right with `value`, and lengths (b)."""
    if not sequences or any(len(s) == 0 for s in sequences):
        raise ValueError("a batch needs at least one sequence, and every sequence at least one step")
    lengths = torch.tensor([len(s) for s in sequences])
    return torch.nn.utils.rnn.pad_sequence(list(sequences), batch_first=True, padding_value=value), lengths


def real(lengths: Tensor, t: int) -> Tensor:
    """(b, t): True at the real steps of each sequence."""
    return torch.arange(t, device=lengths.device) < lengths[:, None]


def last(h: Tensor, lengths: Tensor) -> Tensor:
    """h⁽ᵀ⁾ of each sequence, not of its padding: (b, t, d) -> (b, d)"""
    return h[torch.arange(len(h), device=h.device), lengths - 1]


def backwards(x: Tensor, lengths: Tensor) -> Tensor:
    """Each sequence from its last real step to its first; the padding stays where it is."""
    t = torch.arange(x.shape[1], device=x.device)
    order = torch.where(real(lengths, x.shape[1]), lengths[:, None] - 1 - t, t)
    return x[torch.arange(len(x), device=x.device)[:, None], order]


def columns(x: Tensor) -> Tensor:
    """Rows (b, t, d) -> MF's columns, one matrix per step: (t, d, b)"""
    return x.permute(1, 2, 0)


def flat_one_hot(tokens: Tensor, vocab: int) -> Tensor:
    """One-hot words laid end to end: (…, t) -> (…, t V); a token below 0 is padding and becomes zeros."""
    hot = F.one_hot(tokens.clamp(min=0), vocab) * (tokens >= 0)[..., None]
    return hot.flatten(-2)


def fit_length(tokens: Tensor, length: int, value: int) -> Tensor:
    """(b, t) -> (b, length): cut, or filled up on the right with `value`."""
    return F.pad(tokens[:, :length], (0, max(0, length - tokens.shape[1])), value=value)


def windows(tokens: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Every n neighbours of a text (t,) and the word after them: (t - n, n) and (t - n)."""
    if len(tokens) <= n:
        raise ValueError(f"{len(tokens)} tokens hold no window of {n} and a token after it; give more text")
    return tokens.unfold(0, n, 1)[:-1], tokens[n:]
