"""Arithmetic of convolutional networks: sizes, parameters, FLOPs, receptive fields.

    side         (N + 2P − D (K − 1) − 1) / S + 1              DLN accepts a whole number only; torch takes the floor
    same         P = D (K − 1) / 2                             K odd
    parameters   C_out (C_in/G · K_h K_w + 1)                  a dense layer: C_out (C_in H W + 1)
    FLOPs        2 K_h K_w C_in/G C_out H_out W_out            a multiplication and an addition are two
    separable    depthwise K² C_in + pointwise C_in C_out:     1/C_out + 1/K² of the full cost remains

    receptive field of a stack of layers (K_l, S_l, D_l):
        r_L = 1 + Σ_l D_l (K_l − 1) j_l,    j_l = Π_{i<l} S_i (the jump: input pixels between neighbours)
        same kernel, stride 1: 1 + L (K − 1). Two pixels d apart meet after ⌈2d / (K − 1)⌉ layers if the answer stands
        on one of them.

Errata: MF 22.1.4 says that a depthwise convolution saves a factor C_out / C_in; it is C_out (one filter a channel), and
G = C_in in general. S940 3.5 words 1/C + 1/f² as a reduction factor; it is what remains, and exact with C = C_out.
DLN's 3×5×3 filter on 3×32×32 must be 3×5×5.

Systems: padding-and-stride-arithmetic, receptive-field, depthwise-separable-convolution
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

# Sizes


def exact_size(n: int, kernel: int, padding: int = 0, stride: int = 1, dilation: int = 1) -> Fraction:
    """(N + 2P − D (K − 1) − 1) / S + 1, which need not be whole."""
    return Fraction(n + 2 * padding - dilation * (kernel - 1) - 1, stride) + 1


def output_size(n: int, kernel: int, padding: int = 0, stride: int = 1, dilation: int = 1) -> int:
    """The floor of it, as torch has it: the last pixels may be seen by no window."""
    size = math.floor(exact_size(n, kernel, padding, stride, dilation))
    if size < 1:
        raise ValueError(
            f"a kernel that reaches over {dilation * (kernel - 1) + 1} does not fit {n} + 2·{padding} pixels"
        )
    return size


def whole_size(n: int, kernel: int, padding: int = 0, stride: int = 1, dilation: int = 1) -> int:
    """The size as DLN has it: refused unless it is a whole number; the message says which padding would do."""
    size = exact_size(n, kernel, padding, stride, dilation)
    if size.denominator == 1 and size >= 1:
        return int(size)
    fit = fitting_padding(n, kernel, stride, dilation, padding)
    fix = "no padding makes it whole; change the stride" if fit is None else f"padding {fit} makes it whole"
    raise ValueError(
        f"stride {stride} does not fit: ({n} + 2·{padding} − {kernel})/{stride} + 1 = {float(size):.4g}; {fix}"
    )


def fitting_padding(n: int, kernel: int, stride: int, dilation: int = 1, least: int = 0) -> int | None:
    """The smallest padding from `least` on that gives a whole size; None if there is none (2P has the wrong parity)."""
    for padding in range(least, least + stride):
        size = exact_size(n, kernel, padding, stride, dilation)
        if size.denominator == 1 and size >= 1:
            return padding
    return None


def same_padding(kernel: int, dilation: int = 1) -> int:
    """D (K − 1) / 2: the size stays as it is at stride 1."""
    if dilation * (kernel - 1) % 2:
        raise ValueError(f"a kernel of {kernel} has no middle; 'same' needs an odd size")
    return dilation * (kernel - 1) // 2


def transposed_size(n: int, kernel: int, padding: int = 0, stride: int = 1) -> int:
    """(N − 1) S + K − 2P"""
    return (n - 1) * stride + kernel - 2 * padding


# Counts


def dense_weights(inputs: Sequence[int]) -> int:
    """C·H·W: the weights of one fully connected neuron, without its bias."""
    return math.prod(inputs)


def dense_parameters(inputs: Sequence[int], outputs: Sequence[int]) -> int:
    """Weights and biases of a layer that connects every number with every number."""
    return math.prod(outputs) * (math.prod(inputs) + 1)


def conv_weights(c_in: int, c_out: int, kernel: Sequence[int], groups: int = 1) -> int:
    """C_out · C_in/G · K_h K_w"""
    return c_out * (c_in // groups) * math.prod(kernel)


def conv_parameters(c_in: int, c_out: int, kernel: Sequence[int], groups: int = 1) -> int:
    """C_out (C_in/G · K_h K_w + 1): with one bias for each filter."""
    return conv_weights(c_in, c_out, kernel, groups) + c_out


def conv_macs(c_in: int, c_out: int, kernel: Sequence[int], out: Sequence[int], groups: int = 1) -> int:
    """Multiplications (each with an addition): the weights, once for every place."""
    return conv_weights(c_in, c_out, kernel, groups) * math.prod(out)


def conv_flops(c_in: int, c_out: int, kernel: Sequence[int], out: Sequence[int], groups: int = 1) -> int:
    """2 K_h K_w C_in/G C_out H_out W_out"""
    return 2 * conv_macs(c_in, c_out, kernel, out, groups)


class Separable(NamedTuple):
    """The cost of a full convolution and of its separable replacement, in whatever unit was asked for."""

    standard: int
    depthwise: int
    pointwise: int

    @property
    def remaining(self) -> float:
        """(depthwise + pointwise) / standard = 1/C_out + 1/K²"""
        return (self.depthwise + self.pointwise) / self.standard


def separable_macs(c_in: int, c_out: int, kernel: Sequence[int], out: Sequence[int]) -> Separable:
    """Multiplications of a K×K convolution, and of depthwise K×K followed by pointwise 1×1."""
    return Separable(
        conv_macs(c_in, c_out, kernel, out),
        conv_macs(c_in, c_in, kernel, out, groups=c_in),
        conv_macs(c_in, c_out, (1, 1), out),
    )


def remaining_share(c_out: int, kernel: int) -> float:
    """1/C_out + 1/K², the closed form."""
    return 1 / c_out + 1 / kernel**2


def grouped_saving(c_in: int, c_out: int, kernel: Sequence[int], groups: int) -> float:
    """How many times fewer weights a grouped convolution has: G."""
    return conv_weights(c_in, c_out, kernel) / conv_weights(c_in, c_out, kernel, groups)


# Receptive fields


class Field(NamedTuple):
    """What one number sees along one axis of the input, in input pixels.

    The number at place i sees the pixels from start + i · jump on, `size` of them.
    """

    size: int = 1
    jump: int = 1
    start: int = 0

    def after(self, kernel: int, stride: int = 1, padding: int = 0, dilation: int = 1) -> Field:
        """The field of the next layer's numbers."""
        size = self.size + dilation * (kernel - 1) * self.jump
        return Field(size, self.jump * stride, self.start - padding * self.jump)

    def join(self, other: Field) -> Field:
        """Two branches that meet in a sum or a concatenation: from the first pixel seen by either to the last."""
        if self.jump != other.jump:
            raise ValueError(f"branches with jumps {self.jump} and {other.jump} do not meet pixel on pixel")
        start = min(self.start, other.start)
        return Field(max(self.start + self.size, other.start + other.size) - start, self.jump, start)


Kernel = tuple[int, ...]
"""(K), (K, S), (K, S, P) or (K, S, P, D) of a convolution or a pooling layer."""


def receptive_field(layers: Iterable[Kernel]) -> Field:
    """The field of the last layer of a stack."""
    field = Field()
    for layer in layers:
        field = field.after(*layer)
    return field


def layers_needed(distance: int, kernel: int) -> int:
    """Layers of stride 1 after which a pixel sees another that is `distance` away: ⌈2d / (K − 1)⌉."""
    return math.ceil(Fraction(2 * distance, kernel - 1))


class Stack(NamedTuple):
    """A stack of equal layers with C channels in and out, on maps that keep their size H × W."""

    kernel: int
    depth: int
    receptive_field: int
    weights: int
    flops: int
    nonlinearities: int


def stacks(kernels: Iterable[tuple[int, int]], channels: int, side: int) -> list[Stack]:
    """(K, L) pairs compared: L layers of K×K. Five of 3×3 see 11×11 with 45 C² weights, one of 11×11 has 121 C²."""
    rows = []
    for kernel, depth in kernels:
        field = receptive_field([(kernel,)] * depth).size
        weights = depth * conv_weights(channels, channels, (kernel, kernel))
        flops = depth * conv_flops(channels, channels, (kernel, kernel), (side, side))
        rows.append(Stack(kernel, depth, field, weights, flops, depth))
    return rows
