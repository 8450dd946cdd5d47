"""Order and shape of tensors, reshaping in both memory orders, permuting by index equation, broadcasting.

    order          the number of axes of T ∈ R^{d_1 × … × d_n}: 0 scalar, 1 vector, 2 matrix
    row-major      T[i_1, …, i_n] lies at Σ_k i_k Π_{l>k} d_l      the last index runs fastest (torch, C)
    column-major   T[i_1, …, i_n] lies at Σ_k i_k Π_{l<k} d_l      the first index runs fastest (Fortran)
    reshape        the numbers keep their places in memory; only the shape read into it changes
    permute        Y_ijkl = X_kilj
    broadcast      align shapes from the right, put 1 where an axis is missing, stretch 1 to the other size
                   Y = X + γ stretched:   ∂L/∂γ = ∂L/∂Y summed over the stretched axes

MF 12.3.2 prints the permutation of Y_ijkl = X_kilj as (0,1,2,3) → (2,0,3,1). That is where each axis of X goes
(`destinations`, torch's movedim). torch's permute asks where each axis of Y comes from: (1,3,0,2), `sources` here.
MF (12.9) flattens the batch axis too; before a dense layer one keeps it: `flatten(x, 1)`, (B, C·H·W).

Systems: tensor-shape-operations, broadcasting
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

Shape = tuple[int, ...]


def order(x: Tensor) -> int:
    """The number of axes."""
    return x.dim()


# Memory


def row_major_strides(shape: Sequence[int]) -> Shape:
    """Π_{l>k} d_l for each axis k: how far one step of that index moves in memory."""
    return tuple(math.prod(shape[k + 1 :]) for k in range(len(shape)))


def column_major_strides(shape: Sequence[int]) -> Shape:
    """Π_{l<k} d_l for each axis k."""
    return tuple(math.prod(shape[:k]) for k in range(len(shape)))


def position(index: Sequence[int], strides: Sequence[int]) -> int:
    """Σ_k i_k s_k: where T[i_1, …, i_n] lies in memory."""
    return sum(i * s for i, s in zip(index, strides, strict=True))


def reshape(x: Tensor, shape: Sequence[int]) -> Tensor:
    """The same numbers in row-major order; a contiguous x is not copied."""
    _same_count(x, shape)
    return x.reshape(tuple(shape))


def reshape_column_major(x: Tensor, shape: Sequence[int]) -> Tensor:
    """The same numbers in column-major order: with all axes reversed, it is the row-major reshape."""
    _same_count(x, shape)
    return _reversed(_reversed(x).reshape(tuple(reversed(shape))))


def _reversed(x: Tensor) -> Tensor:
    return x.permute(tuple(reversed(range(x.dim()))))


def _same_count(x: Tensor, shape: Sequence[int]) -> None:
    if math.prod(shape) != x.numel():
        raise ValueError(f"shape {tuple(shape)} holds {math.prod(shape)} numbers, the tensor has {x.numel()}")


def flatten(x: Tensor, start: int = 0) -> Tensor:
    """The axes from `start` on made one; start = 1 keeps the batch."""
    return reshape(x, (*x.shape[:start], math.prod(x.shape[start:])))


# Permutations


def sources(equation: str) -> Shape:
    """The axes for torch's permute: "kilj->ijkl" (X's indices, then Y's) says that Y's axis a is X's sources[a]."""
    before, arrow, after = equation.replace(" ", "").partition("->")
    if not arrow or len(set(before)) < len(before) or sorted(before) != sorted(after):
        raise ValueError(f"{equation!r} is not a permutation; write each index once on each side, as in 'kilj->ijkl'")
    return tuple(before.index(letter) for letter in after)


def destinations(equation: str) -> Shape:
    """Where each axis of X goes in Y: the inverse of `sources`, and the form that MF prints."""
    return inverse(sources(equation))


def inverse(axes: Sequence[int]) -> Shape:
    """The permutation that undoes this one."""
    return tuple(sorted(range(len(axes)), key=lambda a: axes[a]))


def permute(x: Tensor, equation: str) -> Tensor:
    """Y with the indices in the new order: "kilj->ijkl" means Y_ijkl = X_kilj."""
    axes = sources(equation)
    if len(axes) != x.dim():
        raise ValueError(f"{equation!r} names {len(axes)} axes, the tensor has {x.dim()}")
    return x.permute(axes)


# Broadcasting


def broadcast_shape(*shapes: Sequence[int]) -> Shape:
    """The common shape of operands; sizes on one axis must be equal or 1."""
    longest = max((len(shape) for shape in shapes), default=0)
    padded = [(1,) * (longest - len(shape)) + tuple(shape) for shape in shapes]
    common = []
    for axis, sizes in enumerate(zip(*padded, strict=True)):
        stretched = {size for size in sizes if size != 1}
        if len(stretched) > 1:
            names = " and ".join(str(tuple(shape)) for shape in shapes)
            raise ValueError(
                f"shapes {names} do not broadcast: axis {axis - longest} has sizes {sorted(stretched)};"
                " they must be equal or 1"
            )
        common.append(stretched.pop() if stretched else 1)
    return tuple(common)


def broadcast(x: Tensor, shape: Sequence[int]) -> Tensor:
    """x stretched to the shape, without a copy."""
    if broadcast_shape(x.shape, shape) != tuple(shape):
        raise ValueError(f"shape {tuple(x.shape)} does not stretch to {tuple(shape)}; only axes of size 1 do")
    return x.expand(tuple(shape))


def sum_to(gradient: Tensor, shape: Sequence[int]) -> Tensor:
    """The gradient of an operand that was broadcast: summed over the axes that were added or stretched from 1."""
    added = gradient.dim() - len(shape)
    stretched = [added + k for k, size in enumerate(shape) if size == 1 and gradient.shape[added + k] != 1]
    axes = [*range(added), *stretched]
    return (gradient.sum(axes) if axes else gradient).reshape(tuple(shape))
