"""Layers whose weights are codes of 8 or 4 bits with a step for every group of them.

    y = x Ŵᵀ + b,    Ŵ = codes · scales                        symmetric: no zero point (`ops/quantization.py`)

    codes    8 bits: (out, in) int8, −127..127        4 bits: (out, ⌈in/2⌉) uint8, two codes a byte, each stored + 8,
                                                              the first of a pair in the low half
    scales   (out, ⌈in/group⌉) float32; group 32 by default, 0 is a whole row (per channel)

`quantize(model, bits, group)` replaces the linear layers and the convolutions (a kernel is a row of c·h·w numbers).
What shares its matrix with another layer stays, such as an embedding that is the head too, and so do biases, norms and
all that is no matrix. A weight takes 1/4 or 1/8 of float32, and each group 4 bytes more. The matrix is written out for
each product, so this saves memory and no time. What such a layer holds is not trained: `nn/fake_quantized.py`.

Systems: post-training-quantization
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from descend.errors import Mistake
from descend.ops.quantization import pack_nibbles, signed_codes, signed_values, unpack_nibbles

KINDS = (8, 4)
GROUP = 32
METHOD = "descend"
"""What config.json calls the form."""


def check_bits(bits: int) -> None:
    if bits not in KINDS:
        raise ValueError(f"{bits} bits; weights are kept in {' or '.join(map(str, KINDS))}")


class Coded(nn.Module):
    """A weight of this shape, kept as codes of its rows, and a bias; to be filled by `take`."""

    codes: Tensor
    scales: nn.Parameter
    bias: nn.Parameter | None

    def __init__(self, shape: tuple[int, ...], bias: bool, bits: int, group: int):
        super().__init__()
        check_bits(bits)
        rows, columns = shape[0], math.prod(shape[1:])
        self.shape, self.bits, self.group = shape, bits, min(group, columns) or columns
        width, kind = (columns, torch.int8) if bits == 8 else (-(-columns // 2), torch.uint8)
        self.register_buffer("codes", torch.zeros(rows, width, dtype=kind))
        self.scales = nn.Parameter(torch.zeros(rows, -(-columns // self.group)), requires_grad=False)
        self.bias = nn.Parameter(torch.zeros(rows), requires_grad=False) if bias else None

    def take(self, weight: Tensor, bias: Tensor | None) -> Self:
        """Keep these numbers, in codes."""
        codes, scales = signed_codes(weight.detach().float().flatten(1), self.bits, self.group)
        self.codes, self.scales.data = codes if self.bits == 8 else pack_nibbles(codes), scales
        if self.bias is not None and bias is not None:
            self.bias.data = bias.detach().clone()
        return self

    @property
    def weight(self) -> Tensor:
        """Ŵ, in the shape of the layer that it was made of."""
        columns = math.prod(self.shape[1:])
        codes = self.codes if self.bits == 8 else unpack_nibbles(self.codes, columns)
        return signed_values(codes, self.scales, self.group).view(self.shape)

    def extra_repr(self) -> str:
        return f"{'×'.join(map(str, self.shape))}, bits={self.bits}, group={self.group}"


class QuantizedLinear(Coded):
    """x (.., in) -> (.., out), as the linear layer that it was made of, to within half a step of each weight."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True, bits: int = 8, group: int = GROUP):
        super().__init__((out_features, in_features), bias, bits, group)
        self.in_features, self.out_features = in_features, out_features

    @classmethod
    def of(cls, linear: nn.Linear, bits: int = 8, group: int = GROUP) -> Self:
        """The same layer in codes."""
        made = cls(linear.in_features, linear.out_features, linear.bias is not None, bits, group)
        return made.take(linear.weight, linear.bias)

    def linear(self) -> nn.Linear:
        """A plain layer with Ŵ."""
        made = nn.Linear(self.in_features, self.out_features, self.bias is not None, self.codes.device)
        made.weight = nn.Parameter(self.weight.detach())
        if self.bias is not None:
            made.bias = nn.Parameter(self.bias.detach().clone())
        return made

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight.to(x.dtype), self.bias)


class QuantizedConv2d(Coded):
    """x (b, c, h, w) -> (b, c', h', w'), as the convolution that it was made of."""

    def __init__(self, like: nn.Conv2d, bits: int = 8, group: int = 0):
        super().__init__(tuple(like.weight.shape), like.bias is not None, bits, group)
        self.moves: tuple[Any, Any, Any, int] = (like.stride, like.padding, like.dilation, like.groups)

    @classmethod
    def of(cls, like: nn.Conv2d, bits: int = 8, group: int = 0) -> Self:
        """The same layer in codes."""
        return cls(like, bits, group).take(like.weight, like.bias)

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x, self.weight.to(x.dtype), self.bias, *self.moves)


def find_matrices(model: nn.Module) -> dict[str, nn.Linear | nn.Conv2d]:
    """The plain linear layers and convolutions that share their matrix with nothing, by name."""
    owners = Counter(id(p) for part in model.modules() for p in part._parameters.values() if p is not None)
    found: dict[str, nn.Linear | nn.Conv2d] = {}
    for name, part in model.named_modules():
        plain = type(part) is nn.Linear or (type(part) is nn.Conv2d and part.padding_mode == "zeros")
        if plain and owners[id(part.weight)] == 1:
            found[name] = part
    return found


def quantize(model: nn.Module, bits: int = 8, group: int = GROUP) -> dict[str, Any]:
    """Replace the model's matrices by codes, in place; returns what config.json has to say for `rebuild`."""
    check_bits(bits)
    found = find_matrices(model)
    if not found:
        raise Mistake(f"a {type(model).__name__} has no linear layer and no convolution whose weights could be codes")
    for name, layer in found.items():
        try:
            made = make_coded(layer, bits, group).take(layer.weight, layer.bias)
        except ValueError as error:
            raise Mistake(f"{name}.weight: {error}") from None
        model.set_submodule(name, made.train(model.training))
    return {"quant_method": METHOD, "bits": bits, "group": group, "modules": list(found)}


def make_coded(layer: nn.Linear | nn.Conv2d, bits: int, group: int) -> Coded:
    """An empty layer of codes in the shape of a plain one."""
    if isinstance(layer, nn.Conv2d):
        return QuantizedConv2d(layer, bits, group)
    return QuantizedLinear(layer.in_features, layer.out_features, layer.bias is not None, bits, group)


def rebuild(model: nn.Module, said: Mapping[str, Any]) -> None:
    """Give a plain model the layers that config.json names, empty, in place; layers of codes that it has stay."""
    bits, group, names = said.get("bits"), said.get("group"), said.get("modules")
    if bits not in KINDS or type(group) is not int or group < 0 or not isinstance(names, list):
        raise Mistake(f"quantization_config: bits {bits!r}, group {group!r} and modules {names!r} are no form of codes")
    for name in names:
        part = find_part(model, name)
        if isinstance(part, nn.Linear | nn.Conv2d):
            model.set_submodule(name, make_coded(part, bits, group).train(model.training))
        elif not isinstance(part, Coded):
            raise Mistake(f"quantization_config: {type(model).__name__} has no linear layer or convolution {name!r}")


def find_part(model: nn.Module, name: object) -> nn.Module | None:
    """The part of this name, if there is one."""
    return dict(model.named_modules()).get(name) if isinstance(name, str) else None


def write_out(model: nn.Module) -> None:
    """Replace layers of codes by plain layers with the same numbers, in place: for what takes no others."""
    for name, part in list(model.named_modules()):
        if isinstance(part, QuantizedLinear):
            model.set_submodule(name, part.linear())


def count_bytes(tensors: Iterable[Tensor]) -> int:
    """What the tensors take, in memory and in a file."""
    return sum(tensor.nbytes for tensor in tensors)
