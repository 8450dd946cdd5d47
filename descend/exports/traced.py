"""A model as tensors in, tensors out, by name: what a graph of operations can hold.

    forward(tokens, mask)  ->  hidden, pooled          a tuple or a named tuple becomes its tensors, one after another

What is no tensor (a function for a second stage, a number) is left out and told. Examples say which axes may vary:
`tokens` (batch, length); of an image only the batch, since layers may count on its sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

BATCH, LENGTH = "batch", "length"
Axes = tuple[str, ...]
"""The names of the axes that vary; "" for one that does not."""


@dataclass(frozen=True)
class Given:
    """An input of a model: an example of it, and which axes vary."""

    name: str
    example: Tensor
    axes: Axes

    def resize(self, sizes: Mapping[str, int]) -> Tensor:
        """The example with other numbers of rows, columns, ..: cut, or repeated from the start."""
        x = self.example
        for axis, name in enumerate(self.axes):
            if name in sizes:
                x = x.index_select(axis, torch.arange(sizes[name]) % x.shape[axis])
        return x.contiguous()


def name_axes(tensor: Tensor) -> Axes:
    """The rows vary, and of numbers of tokens (b, t) the columns too."""
    is_text = tensor.dim() == 2 and not tensor.is_floating_point()
    return (BATCH, *((LENGTH,) if is_text else [""] * (tensor.dim() - 1)))


def flatten_outputs(found: Any, name: str = "") -> Iterator[tuple[str, Tensor | None]]:
    """(name, tensor) of a result, however its parts lie in one another; None for a part that is no tensor."""
    if isinstance(found, Tensor):
        yield name or "output", found
    elif isinstance(found, tuple | list):
        fields = getattr(found, "_fields", [str(k) for k in range(len(found))])
        for field, part in zip(fields, found, strict=True):
            yield from flatten_outputs(part, join(name, field))
    elif isinstance(found, Mapping):
        for field, part in found.items():
            yield from flatten_outputs(part, join(name, str(field)))
    elif found is not None:
        yield name or "output", None


def join(name: str, field: str) -> str:
    return f"{name}_{field}" if name else f"output_{field}" if field.isdecimal() else field


class Traced(nn.Module):
    """A model whose results are a flat tuple of tensors, called by the names of its inputs."""

    def __init__(self, model: nn.Module, names: tuple[str, ...], constants: Mapping[str, Any]) -> None:
        super().__init__()
        self.model = model
        self.names, self.constants = names, dict(constants)

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(tensor for _, tensor in flatten_outputs(self.call(tensors)) if tensor is not None)

    def call(self, tensors: Sequence[Tensor]) -> Any:
        """What the model itself gives."""
        return self.model(**dict(zip(self.names, tensors, strict=True)), **self.constants)


@contextmanager
def numbers_as_numbers(model: nn.Module) -> Iterator[None]:
    """Inside, a buffer of a single number is that number: what a forward pass reads from it is not a matter of data."""
    taken = [
        (module, name, buffer)
        for module in model.modules()
        for name, buffer in list(module._buffers.items())
        if buffer is not None and not buffer.dim() and name != "num_batches_tracked"
    ]
    kept = [name in module._non_persistent_buffers_set for module, name, _ in taken]
    for module, name, buffer in taken:
        del module._buffers[name]
        setattr(module, name, buffer.item())
    try:
        yield
    finally:
        for (module, name, buffer), unsaved in zip(taken, kept, strict=True):
            delattr(module, name)
            module.register_buffer(name, buffer, persistent=not unsaved)
