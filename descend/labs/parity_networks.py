"""Parity learnt: how many units one hidden layer needs, and a tree of small networks.

    shallow     n = 8 bits → m ReLU units → 1, trained on all 256 inputs, copies from many random weights
    tree        three levels of gates, wired as pairwise xor is; every gate is the same network 2 → 12 → 1

VOM and MF say that one hidden layer needs about 2^(n−1) = 128 units. Eight are enough (`theory/generalization/depth.py`
builds them); whether training finds such weights is another question, which this lab asks.

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
from descend.theory.generalization.depth import formula_terms, list_bits, shallow_parity

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("VOM-A.45", "MF-A.61", "DLN-A.24")
PRINTED = (
    "Parity of n bits needs about 2^(n−1) neurons in one hidden layer and O(n) in a tree of log n levels (erratum: n"
    " ReLU or threshold units in one layer are exact; 2^(n−1) is the size of an AND/OR formula)."
)
CLAIM = (
    "One hidden layer with 8 ReLU units computes the parity of 8 bits exactly, and one with 32 units, a quarter of"
    " 2^(n−1), is found by training; so is a tree of small networks, from some of many starts."
)
PREDICTIONS = (
    AtLeast("built", 1.0, "Share of the 256 inputs that the 8 units built by hand get right."),
    AtLeast("shallow_32", 1.0, "Share of inputs that the best of the copies with 32 units gets right."),
    AtLeast("tree", 1.0, "The same for trees."),
)
PRINTED_PREDICTIONS = (AtMost("shallow_32", 0.99, "Fewer than 2^(n−1) units in one layer cannot compute parity."),)
SCOPE = (
    "Eight bits, all inputs trained on; the best of 6 starts, of 35 for trees: what can be found, not how surely. The"
    " gates of a tree share weights; without that hardly any start succeeded (seeds 10 and 11)."
)
BUDGET = 14.0
PRICE, LEAST = 2.5, 20  # trees that a second of one core buys
BITS, WIDTHS, COPIES, TREE_HIDDEN, STEPS, RATE = 8, (8, 16, 32, 128), 6, 12, 1500, 0.02


class Tree(nn.Module):
    """Copies of a binary tree with one small network at all seven gates; inner outputs pass through tanh."""

    def __init__(self, copies: int, random: torch.Generator) -> None:
        super().__init__()
        self.gate = Copies(copies, (2, TREE_HIDDEN, 1), torch.tanh, random, 2.0)

    def forward(self, x: Tensor) -> Tensor:
        copies, n, width = x.shape
        while width > 1:
            width //= 2
            x = self.gate(x.reshape(copies, -1, 2)).view(copies, n, width)
            x = x.tanh() if width > 1 else x
        return x


def squares(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The mean squared errors of all copies, added up."""
    found: Tensor = (model(x)[..., 0] - y).square().mean(-1).sum()
    return found


def measure(seed: int, budget: float) -> dict[str, Any]:
    """The shares of right answers of every copy."""
    trees, random = buy_trials(budget, PRICE, LEAST), torch.Generator().manual_seed(seed)
    bits = list_bits(BITS)
    right = bits.sum(-1) % 2
    x, y = (2 * bits - 1).float(), (2 * right - 1).float()
    torch.manual_seed(seed)
    models: dict[str, nn.Module] = {
        f"{m} units": Copies(COPIES, (BITS, m, 1), torch.relu, random, 2**0.5) for m in WIDTHS
    }
    models["tree"] = Tree(trees, random)
    shares = {}
    for name, model in models.items():
        each = x.expand(trees if name == "tree" else COPIES, -1, -1)
        fit_copies(model, partial(squares, model, each, y), STEPS, RATE)
        with torch.no_grad():
            shares[name] = ((model(each)[..., 0] > 0) == (y > 0)).double().mean(-1).tolist()
    return {
        "network": list(shares),
        "best": [max(share) for share in shares.values()],
        "solved": [sum(part == 1 for part in share) / len(share) for share in shares.values()],
        "built": float((shallow_parity(bits) == right).double().mean()),
        "formula_terms": formula_terms(BITS),
        "shares": shares,
        "copies": COPIES,
        "trees": trees,
    }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    best = dict(zip(numbers["network"], numbers["best"], strict=True))
    return {"built": numbers["built"], "shallow_32": best["32 units"], "tree": best["tree"]}


def figure(numbers: dict[str, Any]) -> Figure:
    """The share of right answers of every copy of every network."""
    fig, (axes,) = make_panels(1)
    for i, share in enumerate(numbers["shares"].values()):
        axes.plot([i] * len(share), share, "o", alpha=0.5, color=COLOURS[0])
    axes.set_xticks(range(len(numbers["network"])), numbers["network"], rotation=30)
    finish(axes, "right answers of 256, parity of 8 bits", "")
    return fig
