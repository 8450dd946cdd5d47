"""Batch norm folded into the convolution before it: what a trained network no longer needs at inference.

    γ (W ⋆ x − μ) / √(σ² + ε) + β = W' ⋆ x + b'        W' = W γ / √(σ² + ε),  b' = β − μ γ / √(σ² + ε)

The running μ and σ² are constants in evaluation mode, so two affine maps in a row are one. The folded network gives the
same numbers to rounding, with one pass over each map less. A convolution that has a bias b adds b γ / √(σ² + ε).
`fold` works on a copy, in evaluation mode, and finds every convolution whose batch norm follows it: in `ConvUnit` and
`ConvNorm`, and side by side in an nn.Sequential. A module that merges more than that (several branches that become one
convolution) offers `merge_weights` and `merge`, and is replaced by what it gives.
"""

from __future__ import annotations

import copy
from typing import Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn

from descend.nn.convolution.residual import ConvNorm
from descend.nn.convolution.small_maps import Convolution
from descend.nn.convolution.unit import ConvUnit

Net = TypeVar("Net", bound=nn.Module)


@runtime_checkable
class Merges(Protocol):
    """A module of several linear branches that one module can replace, with these weights."""

    def merge_weights(self) -> tuple[Tensor, Tensor]: ...

    def merge(self) -> nn.Module: ...


def fold(network: Net) -> Net:
    """A copy for inference: every batch norm is part of the convolution before it."""
    network = copy.deepcopy(network).eval()
    for module in list(network.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, Merges):
                setattr(module, name, child.merge())
        if isinstance(module, ConvUnit | ConvNorm) and isinstance(module.norm, nn.BatchNorm2d):
            module.conv, module.norm = fold_pair(module.conv, module.norm), nn.Identity()  # type: ignore[assignment]
        elif isinstance(module, nn.Sequential):
            fold_in_sequence(module)
    return network


def fold_in_sequence(layers: nn.Sequential) -> None:
    """Every convolution that a batch norm follows, in place."""
    for i in range(len(layers) - 1):
        first, second = layers[i], layers[i + 1]
        if isinstance(first, nn.Conv2d) and isinstance(second, nn.BatchNorm2d):
            layers[i], layers[i + 1] = fold_pair(first, second), nn.Identity()


def fold_pair(conv: nn.Conv2d, norm: nn.BatchNorm2d) -> nn.Conv2d:
    """One convolution for a convolution and its batch norm in evaluation mode."""
    weight, bias = fold_weights(conv, norm)
    if isinstance(conv, Convolution):  # its matrix form knows no bias
        kernel, stride, padding = conv.numbers
        folded = nn.Conv2d(conv.in_channels, conv.out_channels, kernel, stride, padding, device="meta")
    else:
        folded = copy.copy(conv)
        folded._parameters = dict(conv._parameters)
    folded.weight, folded.bias = nn.Parameter(weight), nn.Parameter(bias)
    return folded.eval()


@torch.no_grad()
def fold_weights(conv: nn.Conv2d, norm: nn.BatchNorm2d) -> tuple[Tensor, Tensor]:
    """W' and b', computed in float64 and rounded once."""
    mean, var = norm.running_mean, norm.running_var
    if mean is None or var is None:
        raise ValueError("a batch norm without running values cannot be folded: it depends on the batch")
    gamma = torch.ones_like(mean) if norm.weight is None else norm.weight
    beta = torch.zeros_like(mean) if norm.bias is None else norm.bias
    scale = gamma.double() / (var.double() + norm.eps).sqrt()
    bias = torch.zeros_like(scale) if conv.bias is None else conv.bias.double()
    weight = conv.weight.double() * scale[:, None, None, None]
    return weight.to(conv.weight.dtype), (beta.double() + (bias - mean.double()) * scale).to(conv.weight.dtype)
