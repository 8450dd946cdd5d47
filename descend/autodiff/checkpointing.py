"""Gradient checkpointing: keep the values at a few places, and recompute the others in the backward pass.

    L layers in k segments: k states are kept, and the L/k activations of one segment at a time
    kept k + L/k, least for k = √L: O(√L) instead of O(L), for one more forward pass; the gradients are the same

MF 10.3.1 names it as the remedy for the memory of reverse mode and gives no scheme; this is the usual one.
A layer maps a tuple of tensors to a tuple of tensors; parameters travel in the tuple, so their gradients come out too.

Systems: gradient-checkpointing
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

State = tuple[Tensor, ...]
Layer = Callable[[State], State]


class Checkpointed(NamedTuple):
    """The results, the adjoints of the first state, and what they cost."""

    outputs: State
    gradients: tuple[Tensor, ...]
    forwards: int
    """Layers evaluated, recomputation included."""
    kept: int
    """States kept at the ends of segments, and activations inside the largest segment."""
    kept_bytes: int
    """Tensors of the kept states, each counted once."""
    peak_bytes: int
    """Kept states, and what autograd saved for one segment, at its largest."""


def backward(layers: Sequence[Layer], state: State, adjoints: State, segments: int) -> Checkpointed:
    """Gradients of Σ ⟨adjoint, output⟩ in the first state; with one segment it is plain reverse mode."""
    size = math.ceil(len(layers) / segments)
    parts = [layers[i : i + size] for i in range(0, len(layers), size)]
    kept, forwards = [state], 0
    with torch.no_grad():
        for part in parts[:-1]:
            for layer in part:
                state = layer(state)
            forwards += len(part)
            kept.append(state)
    kept_bytes, peak = count_bytes([x for held in kept for x in held]), 0
    outputs: State | None = None
    for part, start in zip(reversed(parts), reversed(kept), strict=True):
        saved: list[Tensor] = []

        def keep(x: Tensor) -> Tensor:
            saved.append(x)
            return x

        fresh = tuple(x.detach().requires_grad_(x.is_floating_point()) for x in start)
        end = fresh
        with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
            for layer in part:
                end = layer(end)
        forwards += len(part)
        outputs = tuple(x.detach() for x in end) if outputs is None else outputs
        peak = max(peak, count_bytes([*(x for held in kept for x in held), *saved]))
        adjoints = pull(end, fresh, adjoints)
        kept.pop()
    assert outputs is not None
    return Checkpointed(outputs, adjoints, forwards, len(parts) + size, kept_bytes, peak)


def pull(outputs: State, inputs: State, adjoints: State) -> State:
    """The adjoints of the inputs; those that take no part have 0."""
    moving = [(y, g) for y, g in zip(outputs, adjoints, strict=True) if y.requires_grad]
    sources = [x for x in inputs if x.requires_grad]
    found = torch.autograd.grad(
        [y for y, _ in moving], sources, [g for _, g in moving], allow_unused=True, materialize_grads=True
    )
    rest = iter(found)
    return tuple(next(rest) if x.requires_grad else torch.zeros_like(x) for x in inputs)


def count_bytes(tensors: Sequence[Tensor]) -> int:
    """Of all storages, each counted once: views and repeated tensors cost nothing."""
    return sum({x.untyped_storage().data_ptr(): x.untyped_storage().nbytes() for x in tensors}.values())
