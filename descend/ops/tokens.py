"""Tokens: vectors, stacked as the rows of a matrix; how a signal becomes such a matrix; what acts on it (DLD 5).

    T in R^{N × d}          N tokens as rows
    chunk                   an image in squares, a sound in frames, a text in runs; each flattened to a row
    tokenize                T = C W_tokenizeᵀ, C the chunks (N × p), usually to a lower dimension d < p
    combine                 T_out = A T, A in R^{M × N}: every new token is a linear combination of tokens
    token-wise              F applied to each row alone: F(P T) = P F(T) for every permutation P

A square orthonormal W_tokenize loses nothing: C = T W_tokenize. The two operations make the analogue of a layer of a
multilayer perceptron, with tokens in the place of neurons: T_out = F(A T).

Systems: tokens-and-token-matrix
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def stack(tokens: Sequence[Tensor]) -> Tensor:
    """N vectors (d) -> T (N, d)."""
    return torch.stack(list(tokens))


def unstack(t: Tensor) -> tuple[Tensor, ...]:
    """T (N, d) -> its rows."""
    return t.unbind(0)


def image_chunks(x: Tensor, size: int) -> Tensor:
    """(c, h, w) -> (N, c·size·size), squares from left to right, then down."""
    c, h, w = x.shape
    if h % size or w % size:
        raise ValueError(f"an image of {h} × {w} does not divide into squares of {size}; crop or resize it")
    squares = x.reshape(c, h // size, size, w // size, size)
    return squares.permute(1, 3, 0, 2, 4).reshape(-1, c * size * size)


def image_of_chunks(chunks: Tensor, shape: tuple[int, int, int], size: int) -> Tensor:
    """The image (c, h, w) again."""
    c, h, w = shape
    squares = chunks.reshape(h // size, w // size, c, size, size)
    return squares.permute(2, 0, 3, 1, 4).reshape(c, h, w)


def runs(x: Tensor, size: int) -> Tensor:
    """A text of vectors (t, d) or a sound (t) in runs without overlap: (t / size, size·d)."""
    if len(x) % size:
        raise ValueError(f"{len(x)} do not divide into runs of {size}; cut or pad them")
    return x.reshape(len(x) // size, -1)


def frames(sound: Tensor, size: int, hop: int) -> Tensor:
    """A sound (t) in frames that begin every `hop` samples: ((t − size) // hop + 1, size)."""
    return sound.unfold(0, size, hop)


def tokenize(chunks: Tensor, w: Tensor) -> Tensor:
    """C W_tokenizeᵀ: (N, p) and (d, p) -> (N, d)."""
    return chunks @ w.mT


def combine(a: Tensor, t: Tensor) -> Tensor:
    """A T: (M, N) and (N, d) -> (M, d)."""
    return a @ t


def token_wise(f: Callable[[Tensor], Tensor], t: Tensor) -> Tensor:
    """F of each row alone: F takes one token (d)."""
    return torch.vmap(f)(t)
