"""Depth and structure: a nested target, learnt by nets of three shapes with as many parameters.

    f(x₁ … x₈) = g(g(g(x₁, x₂), g(x₃, x₄)), g(g(x₅, x₆), g(x₇, x₈)))        g(a, b) = sin(2a) cos(2b) + a b / 2

tree        a small network for each of the seven g, wired as the target is (three levels of 2 → 12 → 1)
deep        three dense hidden layers
shallow     one dense hidden layer

All are trained side by side on the same examples, with the same steps. The error is the mean square on new examples
over the variance of the target.

Systems: depth-versus-width
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from descend.labs._evidence import AtLeast, AtMost
from descend.labs._panels import COLOURS, finish, make_panels
from descend.labs._side_by_side import Copies, fit_copies
from descend.labs._trials import buy_trials

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-A.24", "MF-A.59")
PRINTED = "Nested targets need far fewer parameters with deep nets than with shallow ones (no number)."
CLAIM = (
    "On a target that is a tree of functions of two variables, a deep net wired like the tree has at most half of the"
    " error of a shallow one with as many parameters."
)
PREDICTIONS = (
    AtLeast("tree", 2.0, "Error of the shallow net over that of the tree."),
    AtLeast("dense_is_worse", 1.5, "Error of a dense deep net over that of the tree: it is the structure that helps."),
    AtMost("parameters", 1.1, "The largest number of parameters over the smallest: the budgets are equal."),
)
SCOPE = (
    "Eight inputs, one target, about 340 parameters, 1000 examples. Depth alone did not help: dense deep nets of this"
    " size were no better than shallow ones when the lab was built (seed 10)."
)
BUDGET = 8.0
PRICE, LEAST = 0.5, 3  # nets of each shape that a second of one core buys
EXAMPLES, NEW, STEPS, RATE = 1000, 2000, 1200, 0.01
SHAPES = ("tree", "deep", "shallow")


def combine(a: Tensor, b: Tensor) -> Tensor:
    """g"""
    return (2 * a).sin() * (2 * b).cos() + a * b / 2


def target(x: Tensor) -> Tensor:
    """f of x (.., 8)."""
    while x.shape[-1] > 1:
        x = combine(x[..., 0::2], x[..., 1::2])
    return x[..., 0]


class Tree(nn.Module):
    """Copies of a net whose level k has a small network for each pair of the outputs below."""

    def __init__(self, copies: int, random: torch.Generator) -> None:
        super().__init__()
        self.levels = nn.ModuleList([Copies(copies * nodes, (2, 12, 1), torch.tanh, random) for nodes in (4, 2, 1)])

    def forward(self, x: Tensor) -> Tensor:
        copies, n, _ = x.shape
        for level in self.levels:
            pairs = x.reshape(copies, n, -1, 2).transpose(1, 2).reshape(-1, n, 2)
            x = level(pairs).view(copies, -1, n).transpose(1, 2)
        return x


def build(shape: str, copies: int, random: torch.Generator) -> nn.Module:
    if shape == "tree":
        return Tree(copies, random)
    return Copies(copies, (8, 10, 10, 10, 1) if shape == "deep" else (8, 34, 1), torch.tanh, random)


def loss_of(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The mean squared errors of all copies, added up."""
    found: Tensor = (model(x)[..., 0] - y).square().mean(-1).sum()
    return found


def measure(seed: int, budget: float) -> dict[str, Any]:
    """The relative error of every copy of each shape."""
    copies, random = buy_trials(budget, PRICE, LEAST), torch.Generator().manual_seed(seed)
    x, new = (2 * torch.rand(copies, n, 8, generator=random) - 1 for n in (EXAMPLES, NEW))
    y, truth = target(x), target(new)
    found: dict[str, Any] = {"shape": list(SHAPES), "parameters": [], "error": [], "errors": {}, "copies": copies}
    torch.manual_seed(seed)
    for shape in SHAPES:
        model = build(shape, copies, random)
        fit_copies(model, partial(loss_of, model, x, y), STEPS, RATE)
        with torch.no_grad():
            errors = (model(new)[..., 0] - truth).square().mean(-1) / truth.var(-1)
        found["parameters"].append(sum(p.numel() for p in model.parameters()) // copies)
        found["error"].append(float(errors.mean()))
        found["errors"][shape] = errors.tolist()
    return found


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    tree, deep, shallow = numbers["error"]
    return {
        "tree": shallow / tree,
        "dense_is_worse": deep / tree,
        "parameters": max(numbers["parameters"]) / min(numbers["parameters"]),
    }


def figure(numbers: dict[str, Any]) -> Figure:
    """The errors of all copies."""
    fig, (axes,) = make_panels(1)
    for i, shape in enumerate(SHAPES):
        errors = numbers["errors"][shape]
        axes.semilogy([i] * len(errors), errors, "o", color=COLOURS[i])
    axes.set_xticks(range(len(SHAPES)), SHAPES)
    finish(axes, "relative error on new examples", f"shape, about {numbers['parameters'][0]} parameters each")
    return fig
