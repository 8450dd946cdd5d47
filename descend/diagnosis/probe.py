"""A few training batches, forward and backward, with an eye on every layer: what no log holds.

    signal     δˡ = ∂L/∂zˡ,  the gradient that arrives at the output of layer l
    units      the outputs of every relu, sigmoid and tanh, whether it is a module or a call in `forward`
    move       ‖ΔWˡ‖ / ‖Wˡ‖ of one real step of the run's optimizer, with its own state, at the highest learning rate

Everything is done to a copy in memory; the run's files stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from descend.diagnosis.signs import LayerSigns, Units
from descend.engine.faults import NotFinite
from descend.engine.hardware import move_batch
from descend.engine.training import Training
from descend.metrics.units import at_an_end, dead_units

BATCHES = 4  # enough examples that a unit which is 0 for all of them is dead and not only rare
MOVES = 2  # of a batch: both players of a game, the first two of a long list
KINDS = {"relu": "relu", "relu_": "relu", "sigmoid": "sigmoid", "tanh": "tanh", "sigmoid_": "sigmoid", "tanh_": "tanh"}
LOW = {"sigmoid": 0.0, "tanh": -1.0}
BEYOND = {"sigmoid": 0.03, "tanh": 0.015}  # as shares of the range: above 0.97, or below 0.03 and −0.97


class UnitWatch(TorchFunctionMode):
    """Sees every nonlinearity that is called, after which layer, and keeps what its units do."""

    def __init__(self) -> None:
        super().__init__()
        self.after = ""
        self.dead: dict[tuple[str, str], Tensor] = {}
        self.ends: dict[tuple[str, str], list[float]] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        kind = KINDS.get(getattr(func, "__name__", ""))
        if kind and isinstance(out, Tensor) and out.dim() > 1:
            self.keep(kind, out.detach())
        return out

    def keep(self, kind: str, out: Tensor) -> None:
        key = self.after, kind
        if kind == "relu":
            now = dead_units(out, dim=1 if out.dim() == 4 else -1)
            before = self.dead.get(key, now)
            self.dead[key] = before & now if before.shape == now.shape else now
        else:
            share = at_an_end(out, LOW[kind], 1.0, BEYOND[kind]).double().mean().item()
            self.ends.setdefault(key, []).append(share)

    def units(self, last: str) -> tuple[Units, ...]:
        """All that was seen, without the head: a sure answer lies at an end, and rightly so."""
        found = [
            Units(name, kind, mask.numel(), mask.double().mean().item(), 0.0)
            for (name, kind), mask in self.dead.items()
            if name != last
        ]
        found += [
            Units(name, kind, 0, 0.0, sum(shares) / len(shares))
            for (name, kind), shares in self.ends.items()
            if name != last
        ]
        return tuple(found)


class Probe:
    """Hooks on the modules with a weight matrix, and the sums of what passes by."""

    def __init__(self, task: nn.Module):
        self.look = UnitWatch()
        self.modules = {
            name: module
            for name, module in task.named_modules()
            if any(p.dim() > 1 for p in module.parameters(recurse=False))
        }
        self.signals: dict[str, list[float]] = {}  # in the order of the forward pass

    def hook(self, name: str) -> Callable[[nn.Module, Any, Any], None]:
        def seen(module: nn.Module, given: Any, out: Any) -> None:
            self.look.after = name
            values = self.signals.setdefault(name, [])
            # A table of embeddings is no factor of the product, whatever arrives at it.
            if isinstance(out, Tensor) and out.requires_grad and not isinstance(module, nn.Embedding):
                out.register_hook(lambda g: values.append(g.detach().double().norm().item()))

        return seen

    def matrices(self) -> dict[str, list[nn.Parameter]]:
        return {name: [p for p in m.parameters(recurse=False) if p.dim() > 1] for name, m in self.modules.items()}

    @contextmanager
    def watching(self) -> Iterator[None]:
        handles = [module.register_forward_hook(self.hook(name)) for name, module in self.modules.items()]
        try:
            with self.look:
                yield
        finally:
            for handle in handles:
                handle.remove()


def probe(training: Training) -> tuple[tuple[LayerSigns, ...], tuple[Units, ...]]:
    """The layers and units of the task on a few training batches; `move` is not measured yet."""
    watch = Probe(training.task)
    training.task.zero_grad(set_to_none=True)
    for _ in range(BATCHES):
        batch = move_batch(next(training.parts.stream), training.device)
        for move in islice(training.task.moves(batch), MOVES):
            with training.moving(move.player):
                with watch.watching(), training.autocast():
                    loss = move.value().total()
                if loss.isfinite():  # a spoilt example has a finding of its own
                    loss.backward()
    matrices = watch.matrices()
    gradients = {name: norm([p.grad for p in of if p.grad is not None]) / BATCHES for name, of in matrices.items()}
    order = [*watch.signals, *(name for name in matrices if name not in watch.signals)]
    layers = [
        LayerSigns(name, mean(watch.signals.get(name, [])), gradients[name], norm(matrices[name]), math.nan)
        for name in order
    ]
    return tuple(layers), watch.look.units(order[-1] if order else "")


def measure_moves(training: Training, layers: tuple[LayerSigns, ...], rate: float | None) -> tuple[LayerSigns, ...]:
    """The layers with the move of one step at this learning rate."""
    moves = take_step(training, Probe(training.task).matrices(), rate)
    return tuple(replace(layer, move=moves[layer.name]) for layer in layers)


def take_step(training: Training, matrices: dict[str, list[nn.Parameter]], rate: float | None) -> dict[str, float]:
    """‖ΔW‖ / ‖W‖ of every layer in one step of the optimizer."""
    before = {name: [p.detach().clone() for p in of] for name, of in matrices.items()}
    base = next(iter(training.base_lr.values()))[0]
    training.schedule = lambda step, steps: rate / base if rate and base else 1.0
    training.watch = type(training.watch)()
    try:
        training.advance()
    except NotFinite:
        return dict.fromkeys(matrices, math.nan)
    return {
        name: norm([p.detach() - old for p, old in zip(of, before[name], strict=True)]) / max(norm(before[name]), 1e-30)
        for name, of in matrices.items()
    }


def norm(tensors: list[Any]) -> float:
    """‖·‖ of several tensors as one vector."""
    return math.sqrt(sum(t.detach().double().square().sum().item() for t in tensors))


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else math.nan
