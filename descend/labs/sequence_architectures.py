"""RNN, LSTM and attention, one layer each: the rows of the books' table that can be measured.

    path from 1 to n        RNN, LSTM n − 1              attention 1
    gradient ∂y_n/∂x_1      ρ^(n−1): severe, milder      about 1/n: it thins out, it does not vanish
    multiplications         2 n d²  (LSTM 8 n d²)        2 n² d             equal for RNN and attention at n = d
    kept for backward       ~ n                          ~ n² (the n × n weights)
    training step           n steps in a row             one
    next token              the same at any n            ~ n (a look at every cached key)

Measured with equal width d, torch's own recurrent layers (the LSTM with forget bias 1, as it is used) and the equation
of attention. Gradients, counts and kept numbers are exact; times are medians. The table calls attention's memory
O(n²): that holds for the equation. A fused kernel computes the weights again and keeps ~ n, which is measured beside
it.

Systems: sequence-architecture-comparison
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from descend.labs._evidence import Above, AtLeast, AtMost, Below, Within
from descend.nn.attention.multi_head import attend
from descend.ops.attention.dot_product import attention
from descend.theory.attention_cost import fit_exponent
from descend.theory.sequence_cost import ATTENTION, LSTM, RNN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENTRIES = ("MF-B.47", "MF-B.39", "VOM-B.9", "DLN-B.27")
PRINTED = (
    "A table: parallelization no/no/yes, vanishing severe/mild/none, memory low/medium/high O(T²),"
    " inference at long T fast/fast/slow, training slow/slow/fast."
)
CLAIM = (
    "Attention links any two positions in one step, so its gradient does not vanish with distance and a training step"
    " is fast; recurrent layers lose it by a constant factor per step, the LSTM by a milder one. The price is memory"
    " that grows with n² and a next token that costs more the longer the text. The costs of a layer cross at n = d."
)
PREDICTIONS = (
    Below("RNN over LSTM", 1, "Factor of the gradient a step, RNN over LSTM."),
    Below("LSTM's factor", 0.95, "The LSTM's factor a step: it fades."),
    Above("attention's factor", 0.95, "Attention's."),
    Within(
        "kept by recurrence",
        0.95,
        1.05,
        "The power of n of the numbers kept for backward, the one of RNN and LSTM that is farther from 1.",
    ),
    Above("kept by attention", 1.7, "The same for attention."),
    AtMost(
        "FLOPs off",
        0,
        "By how many the FLOPs at n = d differ: RNN as attention, LSTM four times as many.",
    ),
    AtLeast(
        "training time",
        1.5,
        "Seconds of a training step at the longest text, the faster recurrent layer over attention.",
        refuted=2 / 3,
    ),
    AtLeast(
        "token time",
        1.5,
        "Seconds of attention's next token at a long text over those at a short one.",
        refuted=2 / 3,
    ),
    AtMost("recurrent token time", 1.5, "The same for RNN and LSTM, the larger: flat; open above.", refuted=math.inf),
    AtMost("recurrent over attention", 1.5, "The same over attention's: it must not grow as much as that."),
)
SCOPE = "One layer of width 32 of each kind, lengths of 32 to 16,384, times of one core."
WIDTH = 32
DISTANCES = (8, 16, 32, 64)
LENGTHS = (32, 64, 128, 256)
TEXTS = (1024, 16384)  # what a new token looks back at
BUDGET = 2.0
PRICE = 30  # layers of each kind that a second of one core buys
Layer = Callable[[Tensor], Tensor]


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Gradients, counts, memory and times; the budget buys layers to average the gradient over."""
    draws = max(2, round(PRICE * budget))
    layers = {name: [build(name, seed + i) for i in range(draws)] for name in ("rnn", "lstm", "attention")}
    numbers: dict[str, Any] = {"width": WIDTH, "distances": list(DISTANCES), "lengths": list(LENGTHS), "draws": draws}
    for name, found in layers.items():
        gradients = [[gradient(layer, n, seed + i) for n in DISTANCES] for i, layer in enumerate(found)]
        per_draw = [(g[-1] / g[0]) ** (1 / (DISTANCES[-1] - DISTANCES[0])) for g in gradients]
        kept = [kept_numbers(found[0], n) for n in LENGTHS]
        numbers[name] = {
            "path": law(name).path(1, LENGTHS[-1]),
            "steps": law(name).steps(LENGTHS[-1]),
            "gradient": [median(g[i] for g in gradients) for i in range(len(DISTANCES))],
            "factor_a_step": median(per_draw),
            "kept": kept,
            "kept_exponent": growth(kept),
            "flops_at_d": count_flops(found[0], WIDTH),
            "training_seconds": [time_call(partial(train, found[0], n), 3) for n in LENGTHS],
            "token_seconds": [time_call(next_token(name, n), 20) for n in TEXTS],
        }
    fused = [kept_numbers(lambda x: attend(*(x.float()[None, :, None],) * 3)[0, :, 0], n) for n in LENGTHS]
    return {**numbers, "fused_kept": fused, "fused_kept_exponent": growth(fused)}


def law(name: str) -> Any:
    """The closed forms of one architecture."""
    return {"rnn": RNN, "lstm": LSTM, "attention": ATTENTION}[name]


def build(name: str, seed: int) -> Layer:
    """One layer (n, d) -> (n, d) in float64."""
    if name == "attention":
        return lambda x: attention(x, x, x)[0]
    torch.manual_seed(seed)
    layer: nn.Module = nn.RNN(WIDTH, WIDTH).double() if name == "rnn" else nn.LSTM(WIDTH, WIDTH).double()
    if isinstance(layer, nn.LSTM):
        with torch.no_grad():
            for bias, value in ((layer.bias_ih_l0, 1.0), (layer.bias_hh_l0, 0.0)):
                cast("Tensor", bias)[WIDTH : 2 * WIDTH] = value
    return lambda x: layer(x)[0]


def inputs(n: int, seed: int) -> Tensor:
    x = torch.randn(n, WIDTH, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return x.requires_grad_()


def gradient(layer: Layer, n: int, seed: int) -> float:
    """‖∂(Σ y_n)/∂x_1‖ for a text of n positions."""
    x = inputs(n, seed)
    return float(torch.autograd.grad(layer(x)[-1].sum(), x)[0][0].norm())


def kept_numbers(layer: Layer, n: int) -> int:
    """Numbers that the graph keeps for the backward pass, every storage once."""
    kept: dict[int, int] = {}

    def note(x: Tensor) -> Tensor:
        kept[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes() // x.element_size()
        return x

    with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
        out = layer(inputs(n, 0))
    return sum(kept.values()) if out.requires_grad else 0


def growth(kept: list[int]) -> float:
    """The exponent of what a longer text adds; the weights, which are kept at any length, cancel."""
    return fit_exponent(LENGTHS[:-1], [b - a for a, b in pairwise(kept)])


def count_flops(layer: Layer, n: int) -> int:
    """FLOPs of a forward pass, as torch counts them."""
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter, torch.no_grad():
        layer(inputs(n, 0))
    return counter.get_total_flops()


def train(layer: Layer, n: int) -> None:
    """Forward and backward."""
    layer(inputs(n, 0)).sum().backward()


def next_token(name: str, n: int) -> Callable[[], object]:
    """One more position: a step from the state, or a query against n cached keys."""
    x = torch.zeros(1, WIDTH, dtype=torch.float64)
    if name == "attention":
        cache = torch.randn(n, WIDTH, dtype=torch.float64)
        return lambda: attention(x, cache, cache)
    cell = (nn.RNNCell if name == "rnn" else nn.LSTMCell)(WIDTH, WIDTH).double()
    state = x if name == "rnn" else (x, x)
    return lambda: cell(x, state)


def time_call(call: Callable[[], object], times: int) -> float:
    """The median of this many calls, after one that is not counted."""
    call()
    found = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        found.append(time.perf_counter() - began)
    return median(found)


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    rnn, lstm, attn = (numbers[name] for name in ("rnn", "lstm", "attention"))
    flops = attn["flops_at_d"]
    *grown, longer = (r["token_seconds"][1] / r["token_seconds"][0] for r in (rnn, lstm, attn))
    return {
        "RNN over LSTM": rnn["factor_a_step"] / lstm["factor_a_step"],
        "LSTM's factor": lstm["factor_a_step"],
        "attention's factor": attn["factor_a_step"],
        "kept by recurrence": max((r["kept_exponent"] for r in (rnn, lstm)), key=lambda power: abs(power - 1)),
        "kept by attention": attn["kept_exponent"],
        "FLOPs off": abs(rnn["flops_at_d"] - flops) + abs(lstm["flops_at_d"] / 4 - flops),
        "training time": min(r["training_seconds"][-1] for r in (rnn, lstm)) / attn["training_seconds"][-1],
        "token time": longer,
        "recurrent token time": max(grown),
        "recurrent over attention": max(grown) / longer,
    }


def figure(numbers: dict[str, Any]) -> Figure:
    """Three panels: gradient against distance, kept numbers and training time against length."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(12, 3.9), layout="constrained")
    left, middle, right = fig.subplots(1, 3)
    panel(left, numbers, "distances", "gradient", "gradient of the last output in the first input")
    panel(middle, numbers, "lengths", "kept", "numbers kept for the backward pass")
    middle.plot(numbers["lengths"], numbers["fused_kept"], "--", color="0.5", label="attention, fused")
    panel(right, numbers, "lengths", "training_seconds", "seconds of a training step")
    for axes in (left, middle, right):
        axes.legend(frameon=False, fontsize=9)
    return fig


def panel(axes: Axes, numbers: dict[str, Any], x: str, y: str, title: str) -> None:
    """One quantity of all three."""
    for name, color in (("rnn", "#d66820"), ("lstm", "#3b8f4a"), ("attention", "#2b6cd8")):
        axes.plot(numbers[x], numbers[name][y], "o-", color=color, ms=4, label=name)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_title(title, fontsize=11, loc="left", fontweight="bold")
    axes.set_xlabel("positions")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
