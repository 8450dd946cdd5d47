"""Any network, layer by layer: output shape, parameters, FLOPs, and the receptive field computed and measured.

    FLOPs      of the products (convolutions, matrix products) that torch really executes; a multiplication and an
               addition are two. The rules are torch's (torch.utils.flop_counter), the total is equal to its total.
    field      computed: every image tensor carries the field of its pixels; a convolution or a pool enlarges it, a sum
               of branches joins it, whatever mixes all pixels (flatten, global mean, group norm) makes it "all".
               measured: the pixels where the gradient of one output is not 0, over random images.

The computed field is what the wiring allows; the measured one can only be smaller (a max pool passes one gradient).
Nothing is counted for elementwise work, and transposed convolutions leave the computed field open ("?").

Systems: receptive-field, conv2d-layer
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry
from torch.utils.weak import WeakTensorKeyDictionary

from descend.theory.convolution import Field

Seen = tuple[Field, Field] | str
"""Rows and columns; or "all" pixels, "?" where it is not computed, "" where there is no image."""

CONVOLUTION, POOLS = "convolution", ("max_pool2d_with_indices", "avg_pool2d")
MIXERS = ("native_group_norm", "native_layer_norm", "roll", "flip")
OWN_ATTENTION = "descend.attention"  # the library's own kernel
ENLARGE = ("upsample", "grid_sampler", "pixel_shuffle")


class Layer(NamedTuple):
    """One module that computes something itself."""

    name: str
    kind: str
    output: tuple[int, ...]
    parameters: int
    flops: int
    field: str


class Network(NamedTuple):
    """The layers in the order in which they ran."""

    layers: tuple[Layer, ...]

    @property
    def parameters(self) -> int:
        return sum(layer.parameters for layer in self.layers)

    @property
    def flops(self) -> int:
        return sum(layer.flops for layer in self.layers)

    @property
    def weighty(self) -> Network:
        """Without the layers that have neither weights nor products."""
        return Network(tuple(layer for layer in self.layers if layer.parameters or layer.flops))

    def table(self) -> dict[str, Any]:
        """Columns and rows, with the sum as last row: what a report shows."""
        rows = [[n, kind, "×".join(map(str, out)), p, f, field] for n, kind, out, p, f, field in self.layers]
        rows.append(["all", "", "", self.parameters, self.flops, ""])
        return {"columns": ["layer", "kind", "output", "parameters", "FLOPs", "receptive field"], "rows": rows}

    def __str__(self) -> str:
        table = self.table()
        lines = [table["columns"], *([f"{v:,}" if isinstance(v, int) else v for v in row] for row in table["rows"])]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(
                v.rjust(w) if i in (3, 4) else v.ljust(w) for i, (v, w) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )


class Walk(TorchDispatchMode):
    """While it is on: FLOPs by the module that runs, and the field of every image tensor."""

    def __init__(self, inputs: Sequence[Any]) -> None:
        super().__init__()
        self.running = [0]  # numbers of the calls that are under way, the innermost last; 0 is outside
        self.flops: Counter[int] = Counter()
        self.seen: WeakTensorKeyDictionary = WeakTensorKeyDictionary()
        for x in (given for given in inputs if isinstance(given, Tensor)):  # a graph is not one
            self.seen[x] = (Field(), Field()) if x.dim() == 4 and x.is_floating_point() else ""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        rule = flop_registry.get(func.overloadpacket)
        if rule is not None:
            self.flops[self.running[-1]] += int(rule(*args, **(kwargs or {}), out_val=out))
        elif str(func.overloadpacket) == OWN_ATTENTION:
            q, k = args[0].shape, args[1].shape  # (b, t, h, k), (b, s, ..): Q Kᵀ and A V
            self.flops[self.running[-1]] += 4 * math.prod(q) * k[1]
        before = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, Tensor) and x in self.seen]
        for y in pytree.tree_leaves(out):
            if isinstance(y, Tensor) and before:
                self.seen[y] = reach(func.overloadpacket.__name__, args, y, [(x, self.seen[x]) for x in before])
        return out

    def field(self, x: Any) -> str:
        seen: Seen = self.seen.get(x, "") if isinstance(x, Tensor) else ""
        return seen if isinstance(seen, str) else "×".join(str(axis.size) for axis in seen)


def reach(name: str, args: Sequence[Any], y: Tensor, before: Sequence[tuple[Tensor, Seen]]) -> Seen:
    """What a pixel of y sees, given what the pixels of the inputs see."""
    seen = [found for _, found in before if found]
    if not seen:
        return ""
    if "all" in seen:
        return "all"
    fields = [found for found in seen if not isinstance(found, str)]
    if len(fields) < len(seen) or name.startswith(ENLARGE) or (name == CONVOLUTION and args[6]):
        return "?"
    if name == CONVOLUTION:
        return slid(fields[0], args[1].shape[2:], args[3], args[4], args[5])
    if name in POOLS:
        kernel, given = args[1], [*args[2:4], *([], [])][:2]
        dilation = args[4] if name == POOLS[0] and len(args) > 4 else (1, 1)
        return slid(fields[0], kernel, given[0] or kernel, given[1] or (0, 0), dilation)
    whole = name in MIXERS or (name == "native_batch_norm" and bool(args[5]))
    if whole or any(x.dim() != 4 or y.dim() != 4 or x.shape[-2:] != y.shape[-2:] for x, found in before if found):
        return "all"
    try:
        first, *others = fields
        for other in others:
            first = first[0].join(other[0]), first[1].join(other[1])
        return first
    except ValueError:
        return "?"


def slid(field: tuple[Field, Field], *sizes: Sequence[int]) -> tuple[Field, Field]:
    """Both axes after a window with kernel, stride, padding, dilation; a single number stands for both."""
    rows, columns = zip(*(tuple(size) * 2 if len(size) == 1 else tuple(size) for size in sizes), strict=True)
    return field[0].after(*rows), field[1].after(*columns)


class Call(NamedTuple):
    """One run of a module."""

    number: int
    module: nn.Module
    output: tuple[int, ...]
    field: str


def layers(model: nn.Module, *inputs: Any) -> Network:
    """The table of a model on these inputs, in evaluation mode. On the meta device nothing is computed or stored."""
    walk, calls, number = Walk(inputs), list[Call](), itertools.count(1)

    def enter(module: nn.Module, given: Any) -> None:
        walk.running.append(next(number))

    def leave(module: nn.Module, given: Any, out: Any) -> None:
        first = next((x for x in pytree.tree_leaves(out) if isinstance(x, Tensor)), None)
        shape = () if first is None else tuple(first.shape)
        calls.append(Call(walk.running.pop(), module, shape, walk.field(first)))

    names = {module: name for name, module in model.named_modules()}
    handles = [m.register_forward_pre_hook(enter) for m in names] + [m.register_forward_hook(leave) for m in names]
    try:
        with evaluating(model), torch.no_grad(), sdpa_kernel(SDPBackend.MATH), walk:
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
    return Network(tuple(rows(names, calls, walk.flops)))


def rows(names: dict[nn.Module, str], calls: Sequence[Call], flops: Counter[int]) -> Iterator[Layer]:
    """Modules that ran and have no children, or that have weights or products of their own; a shared weight once."""
    counted: set[nn.Parameter] = set()
    ran = {call.module for call in calls}
    for call in calls:
        own = count_held(call.module, ran) - counted
        counted |= own
        if own or flops[call.number] or not any(True for _ in call.module.children()):
            name, kind = names[call.module] or "(itself)", type(call.module).__name__
            yield Layer(name, kind, call.output, sum(p.numel() for p in own), flops[call.number], call.field)


def count_held(module: nn.Module, ran: set[nn.Module]) -> set[nn.Parameter]:
    """Its weights, and those of parts that never run by themselves (nn.MultiheadAttention's out_proj)."""
    idle = (count_held(child, ran) for child in module.children() if child not in ran)
    return set(module.parameters(recurse=False)).union(*idle)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode inside, and every module as it was afterwards; torch's fused layers would hide products."""
    before, fused = {module: module.training for module in model.modules()}, torch.backends.mha.get_fastpath_enabled()
    model.eval()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)
        for module, mode in before.items():
            module.training = mode


def measure_field(
    fn: Callable[[Tensor], Tensor], image: Sequence[int], trials: int = 32, seed: int = 0
) -> tuple[int, int]:
    """Rows and columns of the input that one pixel in the middle of fn(x) (b, c, h, w) depends on.

    Found where the gradient of a random mix of its channels is not 0 for any of `trials` random images (c, h, w).
    """
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(trials, *image, generator=random, dtype=torch.float64).requires_grad_()
    y = fn(x)
    if y.dim() != 4:
        raise ValueError(f"the field of a pixel needs maps (b, c, h, w), not {tuple(y.shape)}")
    pixel = y[:, :, y.shape[2] // 2, y.shape[3] // 2]
    mix = torch.randn(pixel.shape, generator=random, dtype=torch.float64)
    [g] = torch.autograd.grad((pixel * mix).sum(), x)
    touched = g.abs().amax((0, 1)) > 0
    return extent(touched.any(1)), extent(touched.any(0))


def extent(touched: Tensor) -> int:
    """From the first to the last True."""
    at = touched.nonzero()
    return int(at[-1] - at[0]) + 1 if len(at) else 0
