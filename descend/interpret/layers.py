"""Layers by their names, and what they put out while the network runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from descend.errors import Mistake, nearest


def find_layer(model: nn.Module, name: str) -> nn.Module:
    """The module of this name ("c1", "stages.0.conv")."""
    names = dict(model.named_modules())
    if name not in names or not name:
        raise Mistake(f"{type(model).__name__} has no layer {name!r}.{nearest(name, names)}")
    return names[name]


def list_convolutions(model: nn.Module) -> list[str]:
    """The names of the 2-D convolutions, in the order in which the model holds them."""
    return [name for name, module in model.named_modules() if isinstance(module, nn.Conv2d)]


def list_maps(model: nn.Module, x: Tensor) -> dict[str, tuple[int, int]]:
    """The sizes (h', w') of the maps that each 2-D convolution makes of images x, in the order in which they run."""
    found: dict[str, tuple[int, int]] = {}

    def note_size(name: str) -> Callable[[nn.Module, object, Tensor], None]:
        def keep(_: nn.Module, given: object, out: Tensor) -> None:
            found[name] = (out.shape[-2], out.shape[-1])

        return keep

    hooks = [find_layer(model, name).register_forward_hook(note_size(name)) for name in list_convolutions(model)]
    try:
        with evaluation_mode(model), torch.no_grad():
            model(x)
    finally:
        for hook in hooks:
            hook.remove()
    return found


def find_last_maps(model: nn.Module, x: Tensor, least: int = 4) -> str:
    """The last convolution whose maps have at least least × least places; none: "".

    One that looks at its neighbours is preferred to one of 1×1, which may be a shortcut past the others.
    """
    large = [name for name, size in list_maps(model, x[:1]).items() if min(size) >= least]
    layers = {name: module for name, module in model.named_modules() if isinstance(module, nn.Conv2d)}
    wide = [name for name in large if max(layers[name].kernel_size) > 1]
    return (wide or large or [""])[-1]


@contextmanager
def watch_layer(model: nn.Module, name: str) -> Iterator[list[Tensor]]:
    """Inside, the list receives what the layer puts out at each call, still a part of the graph."""
    seen: list[Tensor] = []

    def keep(_: nn.Module, given: object, out: object) -> None:
        if not isinstance(out, Tensor):
            raise Mistake(f"layer {name!r} returns a {type(out).__name__}, not a tensor; choose a layer inside it")
        seen.append(out)

    hook = find_layer(model, name).register_forward_hook(keep)
    try:
        yield seen
    finally:
        hook.remove()


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Inside, no dropout and no batch statistics; afterwards every module is as it was."""
    before = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, training in before.items():
            module.training = training


def feature_maps(model: nn.Module, name: str, x: Tensor) -> Tensor:
    """What the layer makes of images x (b, c, h, w): its activation maps (b, k, h', w'), as the layer puts them out."""
    with evaluation_mode(model), torch.no_grad(), watch_layer(model, name) as seen:
        model(x)
    if len(seen) != 1:
        raise Mistake(f"layer {name!r} ran {len(seen)} times for one input; choose a layer that runs once")
    return seen[0]


def as_maps(a: Tensor, height: int, width: int) -> Tensor:
    """Tokens (b, t, d) as maps (b, d, h', w') of an image of this shape; maps stay as they are.

    The last h'·w' tokens are the patches, row by row, h' : w' = height : width; tokens before them (class,
    distillation) are left out.
    """
    if a.dim() == 4:
        return a
    if a.dim() != 3:
        raise Mistake(f"a layer with outputs of shape {tuple(a.shape)} has no maps; choose a convolution or a block")
    t = a.shape[1]
    sizes = [(h, h * width // height) for h in range(1, t + 1) if h * width % height == 0]
    rows, columns = max((s for s in sizes if s[0] * s[1] <= t), default=(0, 0))
    if not rows or t - rows * columns > 2:
        raise Mistake(f"{t} tokens do not form a grid for an image of {height}×{width}; choose another layer")
    return a[:, t - rows * columns :].transpose(1, 2).unflatten(-1, (rows, columns))


def answer(model: nn.Module, x: Tensor, y: Tensor | None) -> tuple[Tensor, Tensor]:
    """The logits z (b, classes) and the class looked at: y, or the most likely one."""
    z = model(x)
    if not isinstance(z, Tensor) or z.dim() != 2:
        raise Mistake(f"{type(model).__name__} is not a classifier: its output is not (b, classes)")
    return z, z.argmax(dim=1) if y is None else y
