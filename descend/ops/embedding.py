"""Embedding: a row of numbers for each token, picked by the token's number.

    E in R^{V × d}        e_i = Eᵀ x = row i of E              x one-hot: the product picks a row          (VOM)
    W in R^{N × V}        v_i = W x  = column i of W           the same numbers, W = Eᵀ                    (DLN)
    X = E[t, :]           (T × d), a row for each token of a text
    parameters            V d
    ∂L/∂E                 row i gets the sum of the gradients at the places where token i stands; an unused row gets 0

Picking is what is computed; the product is what it means, and costs V times as much. `nn.Embedding` is this layer, with
`from_pretrained(matrix, freeze)` for the four uses in DLN: frozen or trained, from random or given values.

DLN prints v = W x beside a note that one-hot vectors are rows; W x needs columns, rows need x Wᵀ. VOM 12 counts tokens
from 1, VOM 7 from 0; here from 0.

Systems: embedding-lookup, one-hot-words
"""

from __future__ import annotations

import torch
from torch import Tensor


def one_hot(ids: Tensor, vocab: int) -> Tensor:
    """Numbers (...) -> (..., V): 1 at place i, 0 elsewhere."""
    check(ids, vocab)
    return (ids[..., None] == torch.arange(vocab, device=ids.device)).to(torch.get_default_dtype())


def lookup(ids: Tensor, e: Tensor) -> Tensor:
    """E[i, :] for every number: (...) -> (..., d)."""
    check(ids, len(e))
    return torch.nn.functional.embedding(ids, e)


def lookup_by_product(ids: Tensor, e: Tensor) -> Tensor:
    """The same as one-hot rows times E."""
    return one_hot(ids, len(e)).to(e.dtype) @ e


def lookup_columns(x: Tensor, w: Tensor) -> Tensor:
    """DLN: v = W x, of one-hot columns (V) or (V, m) and W (N, V)."""
    return w @ x


def parameters(vocab: int, width: int) -> int:
    """V d."""
    return vocab * width


def check(ids: Tensor, vocab: int) -> None:
    """Refuse a number without a row; looked at on the CPU only, and not while a graph is traced."""
    if not ids.is_cpu or torch.compiler.is_compiling() or not ids.numel():
        return
    low, high = (int(v) for v in ids.aminmax())
    if low < 0 or high >= vocab:
        raise ValueError(
            f"token {low if low < 0 else high} has no row: the embedding has rows 0..{vocab - 1}; "
            f"use the tokenizer that the model was trained with"
        )
