"""Attention patterns: which query may look at which key, as a mask (t, t) that is True where it may.

    window             N(i) = {j : |i − j| ≤ w}                                  w is a RADIUS: 2w + 1 keys
    dilated window     N(i) = {i − w d, i − (w−1) d, .., i + w d}                stride d, reach w d
    global tokens G    N(i) = {1..t} for i in G, else N_local(i) ∪ G             symmetric
    strided, causal    j ≤ i and (i − j < l or (i − j) mod l = 0)                Sparse Transformer, l ≈ √t
    fixed, causal      j ≤ i and (⌊j/l⌋ = ⌊i/l⌋ or j mod l ≥ l − c)              the last c of every l are summaries
    BigBird            window, global and random blocks                          in units of a block of tokens

These are the forms to read and to count; `descend.nn` computes each without the t × t matrix. In the paper of
Longformer (and in its files) w is the whole window, w/2 a side; the books' w is a radius, and so is ours.

Systems: sliding-window-attention, sparse-transformer-attention, bigbird, longformer
"""

from __future__ import annotations

import torch
from torch import Tensor


def distance(t: int) -> Tensor:
    """i − j of every query i and key j: (t, t)"""
    at = torch.arange(t)
    return at[:, None] - at


def window(t: int, radius: int) -> Tensor:
    """|i − j| ≤ w"""
    return distance(t).abs() <= radius


def dilated(t: int, radius: int, stride: int) -> Tensor:
    """i − j = m d with |m| ≤ w"""
    apart = distance(t)
    return (apart % stride == 0) & (apart.abs() <= radius * stride)


def with_global(mask: Tensor, places: Tensor) -> Tensor:
    """The tokens at `places` (from 0) look at all and are seen by all."""
    mask = mask.clone()
    mask[places] = True
    mask[:, places] = True
    return mask


def first_token(t: int) -> Tensor:
    """G = {[CLS]}: classification."""
    return torch.arange(min(t, 1))


def question_tokens(question: int) -> Tensor:
    """G = the tokens of the question, which stand first."""
    return torch.arange(question)


def every(t: int, stride: int) -> Tensor:
    """G = {1, 1 + s, 1 + 2s, ..}, counted from 0 here: ⌈t/s⌉ tokens."""
    return torch.arange(0, t, stride)


def strided(t: int, stride: int) -> Tensor:
    """The l tokens up to i, and every l-th before."""
    apart = distance(t)
    return (apart >= 0) & ((apart < stride) | (apart % stride == 0))


def fixed(t: int, stride: int, summaries: int = 1) -> Tensor:
    """The tokens of i's own block of l up to i, and the last c of every block before."""
    at = torch.arange(t)
    together = at[:, None] // stride == at // stride
    return (distance(t) >= 0) & (together | (at % stride >= stride - summaries))


def big_bird_blocks(n: int, radius: int = 1, ends: int = 1) -> Tensor:
    """Window and global part of BigBird between n blocks: the first and last `ends` blocks are global."""
    edge = torch.arange(n)
    edge = edge[(edge < ends) | (edge >= n - ends)]
    return with_global(window(n, radius), edge)


def random_blocks(known: Tensor, count: int, heads: int, seed: int) -> Tensor:
    """For each head and row, `count` blocks that it does not see yet: (heads, n, count), −1 where none is left.

    The same seed gives the same blocks.
    """
    n = len(known)
    draw = torch.rand(heads, n, n, generator=torch.Generator().manual_seed(seed)).masked_fill(known, -1.0)
    best = draw.topk(min(count, n), dim=-1)
    return best.indices.masked_fill(best.values < 0, -1)


def big_bird(n: int, radius: int, ends: int, count: int, heads: int, seed: int) -> Tensor:
    """BigBird between n blocks: window, global and random (heads, n, n)."""
    known = big_bird_blocks(n, radius, ends)
    drawn = random_blocks(known, count, heads, seed)
    extra = torch.zeros(heads, n, n + 1, dtype=torch.bool).scatter_(-1, drawn % (n + 1), True)
    return known | extra[..., :n]


def block_counts(look: Tensor, n: int) -> Tensor:
    """How often each row lists each of n blocks: look (.., n, m), −1 for none, gives (.., n, n)."""
    counts = torch.zeros(*look.shape[:-1], n + 1)
    return counts.scatter_add_(-1, look % (n + 1), torch.ones(look.shape))[..., :n]


def of_tokens(blocks: Tensor, size: int, t: int) -> Tensor:
    """The pattern of t tokens from that of their blocks: (.., n, n) -> (.., t, t)"""
    return blocks.repeat_interleave(size, -1).repeat_interleave(size, -2)[..., :t, :t]


def pairs(mask: Tensor) -> int:
    """How many scores there are."""
    return int(mask.sum())


def reach(mask: Tensor, layers: int) -> Tensor:
    """Which input can change which output after this many layers: the boolean power of the pattern."""
    found = torch.eye(mask.shape[-1], dtype=torch.float64).expand(mask.shape)
    for _ in range(layers):
        found = ((mask.double() @ found) > 0).double()
    return found.bool()


def layers_to_connect(mask: Tensor) -> int:
    """The fewest layers after which every allowed end has been reached: the diameter of the graph.

    A causal pattern has only to connect j ≤ i.
    """
    t = mask.shape[-1]
    causal = not bool(mask.triu(1).any())
    wanted = distance(t) >= 0 if causal else torch.ones(t, t, dtype=torch.bool)
    for layers in range(1, t + 1):
        if bool((reach(mask, layers) | ~wanted).all()):
            return layers
    raise ValueError("this pattern never connects all positions; add global tokens or a wider window")
