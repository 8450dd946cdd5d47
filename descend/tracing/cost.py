"""What each mode costs on a recorded program: operations of arithmetic, time, memory.

    evaluate      the values alone
    reverse       the values, then one backward pass: the whole gradient
    checkpointed  the same with √n segments: fewer values kept, most of them computed twice
    forward       the values with one tangent: one directional derivative; n passes for a gradient of n numbers

FLOPs are counted where torch really executes (a multiplication and an addition are two; a kernel that is not a product
of matrices counts one for each number it makes; views are free). Memory is what is held beyond inputs and parameters at
the worst moment: for reverse mode what autograd saved, for forward mode the values still in use, with their tangents.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from descend.autodiff import checkpointing
from descend.autodiff.checkpointing import State, count_bytes
from descend.tracing.program import Program, compute


class ModeCost(NamedTuple):
    """Of one mode. `passes` is how often it must run for the whole gradient; the other numbers are for one pass."""

    mode: str
    passes: int
    flops: int | None
    seconds: float | None
    memory: int | None
    evaluations: int | None = None
    """Operations of the program that were evaluated, for the two forms of reverse mode."""


class FlopCounter(TorchDispatchMode):
    """Counts what torch executes while it is on."""

    total = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        rule = flop_registry.get(func.overloadpacket)
        if rule is not None:
            self.total += int(rule(*args, **(kwargs or {}), out_val=out))
        elif not func.is_view and not func.overloadpacket.__name__.startswith(MOVES):
            self.total += sum(x.numel() for x in pytree.tree_leaves(out) if isinstance(x, Tensor))
        return out


# Kernels that move numbers without computing any.
STILL = """_fw_primal _make_dual _to_copy _unsafe_view alias cat clone copy detach empty eye fill full gather index lift
new_ ones rand scatter slice stack zero"""
MOVES = tuple(STILL.split())


def measure_costs(program: Program, segments: int = 0) -> list[ModeCost]:
    """All four; `segments` 0 means √n."""
    leaves = [node.value for node in program.leaves]
    numbers = sum(node.value.numel() for node in program.sources)
    alive = count_alive(program)
    segments = segments or max(1, math.isqrt(len(program.operations)))
    found = [measure_pass("evaluate", 0, lambda: program.evaluate(leaves), alive)]
    for mode, parts in (("reverse", 1), ("checkpointed", segments)):
        result = sweep(program, parts)
        beyond = result.peak_bytes - count_bytes([node.value for node in program.sources])
        cost = measure_pass(mode, 1, lambda parts=parts: sweep(program, parts), beyond)  # type: ignore[misc]
        found.append(cost._replace(evaluations=result.forwards))
    try:
        found.append(measure_pass("forward", numbers, lambda: push_tangent(program), 2 * alive))
    except (RuntimeError, NotImplementedError):  # torch has no forward rule for one of the operations
        found.append(ModeCost("forward", numbers, None, None, 2 * alive))
    return found


def measure_pass(mode: str, passes: int, run: Callable[[], Any], memory: int) -> ModeCost:
    """Flops of one run, and the median time of a few."""
    counter = FlopCounter()
    with counter:
        run()
    times: list[float] = []
    end = time.perf_counter() + 0.15
    while len(times) < 7 and (not times or time.perf_counter() < end):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return ModeCost(mode, passes, counter.total, sorted(times)[len(times) // 2], memory)


def sweep(program: Program, segments: int) -> checkpointing.Checkpointed:
    """The gradient by reverse mode, with the program cut into segments."""
    layers, state, end = make_chain(program)
    return checkpointing.backward(layers, state, end, segments)


def make_chain(program: Program) -> tuple[list[checkpointing.Layer], State, State]:
    """The program as layers: each maps the values in use before an operation to those in use after it.

    Only what depends on the sources is computed; the rest are constants.
    """
    last = {parent: node.index for node in program.nodes for parent in node.parents}
    last[program.output] = len(program.nodes)
    sources = [node.index for node in program.sources]
    alive, active, layers = list(sources), set(sources), list[checkpointing.Layer]()
    for node in program.operations:
        if node.frozen or not node.value.is_floating_point() or active.isdisjoint(node.parents):
            continue
        active.add(node.index)
        before = list(alive)
        # Inputs and parameters stay to the end: their gradients are what is asked for.
        alive = [i for i in before if last.get(i, -1) > node.index or i in sources]
        if last.get(node.index, -1) > node.index:
            alive.append(node.index)
        layers.append(make_layer(program, node.index, before, list(alive)))
    state = tuple(program.nodes[i].value for i in sources)
    values = [program.nodes[i].value for i in alive]
    ends = (
        torch.ones_like(x) if i == program.output else torch.zeros_like(x) for i, x in zip(alive, values, strict=True)
    )
    return layers, state, tuple(ends)


def make_layer(program: Program, index: int, before: Sequence[int], after: Sequence[int]) -> checkpointing.Layer:
    node = program.nodes[index]

    def run(state: State) -> State:
        values = dict(zip(before, state, strict=True))
        values[index] = compute(node, [values[p] if p in values else program.nodes[p].value for p in node.parents])
        return tuple(values[i] for i in after)

    return run


def push_tangent(program: Program) -> Tensor:
    """Values and tangents in one pass, along all ones."""
    with torch.no_grad(), forward_ad.dual_level():
        duals = [
            forward_ad.make_dual(n.value, torch.ones_like(n.value)) if n.differentiable else n.value
            for n in program.leaves
        ]
        return program.evaluate(duals)


def count_alive(program: Program) -> int:
    """Bytes of the values in use at the worst moment of an evaluation, beyond the leaves."""
    last = {parent: node.index for node in program.nodes for parent in node.parents}
    alive, most = 0, 0
    size = {node.index: node.value.numel() * node.value.element_size() for node in program.operations}
    for node in program.operations:
        alive += size[node.index]
        most = max(most, alive)
        alive -= sum(size.get(parent, 0) for parent in set(node.parents) if last[parent] == node.index)
    return most
