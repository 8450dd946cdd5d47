"""A residual stack as an ensemble of paths, and its self-chosen depth: what happens when trained blocks are taken out.

    y = (I + F_n) ⋯ (I + F_1) x        2ⁿ paths, C(n, k) of length k        (`descend.theory.residual_paths`)

A stack of 24 blocks x + W_2 ReLU(W_1 LN(x)) of width 32, much deeper than scikit-learn's digits need, is trained with
weight decay. A net of such layers without the sums stands beside it; of 6 only, since 24 learn nothing. Measured on
validation images: the size of each block's term, ‖F(x)‖/‖x‖, and the loss when this block alone is taken out; then the
loss without the quarter of the blocks with the smallest terms, and with the largest. A plain net has one path, and
loses it with any layer; a residual net loses half of 2ⁿ and keeps answering.
Taking out all blocks leaves the identity.

Systems: residual-stack-analysis
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from descend.data.images.digits import load_digits_split
from descend.labs._evidence import Above, AtLeast, Below
from descend.labs._train import train
from descend.nn.convolution.residual import Residual
from descend.theory.residual_paths import linear_stack, mean_path_length, paths_by_length, sum_over_paths

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("S940-DLD.50", "S940-DLD.52")
PRINTED = (
    "A residual net is an ensemble of exponentially many paths; with very many blocks it learns F ="
    " 0 where it needs none."
)
CLAIM = (
    "A residual net of n blocks acts as an ensemble of 2^n paths: with any one block removed it answers almost as"
    " well, while a plain net falls to chance; the blocks that it does not need are those with a small term."
)
PREDICTIONS = (
    Below("paths off", 1e-12, "How far the 2ⁿ paths of a linear stack are from the stack itself."),
    AtLeast("identity without all", 1, "1 where the stack without its blocks is the identity."),
    Below("error of the whole", 0.1, "Error of the residual net."),
    Below(
        "error without a block",
        0.2,
        "Its error without any one block, the third worst: all but two may go.",
    ),
    Above("plain without a layer", 0.4, "Error of the plain net without a layer, the median."),
    Below("plain whole", 0.2, "Error of the whole plain net: it has learned."),
    Below(
        "small terms cost",
        1,
        "Loss without the smallest quarter of the terms over that without the largest.",
    ),
)
SCOPE = "24 blocks of width 32 on 8×8 digits, a plain net of 6 layers beside it."
BLOCKS, PLAIN, WIDTH, BATCH, LR = 24, 6, 32, 64, 3e-3
BUDGET = 4.0
PRICE = 90  # training steps of both nets that a second of one core buys
ENOUGH = 200  # steps below which nothing is claimed
LINEAR = 8  # blocks of the linear stack whose 256 paths are added up


class Tower(nn.Module):
    """images (b, 64) -> logits (b, 10), through a stack from which blocks can be left out."""

    def __init__(self, blocks: list[nn.Module]):
        super().__init__()
        self.first, self.last = nn.Linear(64, WIDTH), nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 10))
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x: Tensor, without: Collection[int] = ()) -> Tensor:
        x = self.first(x)
        for i, block in enumerate(self.blocks):
            x = x if i in without else block(x)
        return cast("Tensor", self.last(x))


def layer() -> nn.Module:
    """F: LN, dense, ReLU, dense."""
    return nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Norms and losses block by block, of a residual and a plain stack."""
    steps = max(2, round(PRICE * budget))
    splits = load_digits_split()
    mean, std = splits.train.x.mean(), splits.train.x.std()
    (x, y), held = (((part.x.flatten(1) - mean) / std, part.y) for part in (splits.train, splits.valid))
    found: dict[str, Any] = {"block": list(range(1, BLOCKS + 1))}
    torch.manual_seed(seed)
    residual = Tower([Residual(layer()) for _ in range(BLOCKS)])
    plain = Tower([layer() for _ in range(PLAIN)])
    for model in (residual, plain):
        fit(model, x, y, steps, seed)
    found |= lesions(residual, *held) | measure_terms(residual, *held) | {"plain": lesions(plain, *held)}
    return found | linear(seed) | {"steps": steps, "blocks": BLOCKS, "chance": 0.9}


def fit(model: nn.Module, x: Tensor, y: Tensor, steps: int, seed: int) -> None:
    """Train on random batches."""
    random = torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        rows = torch.randint(len(y), (BATCH,), generator=random)
        return nn.functional.cross_entropy(model(x[rows]), y[rows])

    train(model, loss, steps, LR)
    model.eval()


@torch.no_grad()
def lesions(model: Tower, x: Tensor, y: Tensor) -> dict[str, Any]:
    """Loss and error of the whole net, and without each block alone."""
    whole = judge(model(x), y)
    each = [judge(model(x, without=(i,)), y) for i in range(len(model.blocks))]
    return {
        "whole_loss": whole[0],
        "whole_error": whole[1],
        "loss_without": [loss for loss, _ in each],
        "error_without": [error for _, error in each],
    }


@torch.no_grad()
def measure_terms(model: Tower, x: Tensor, y: Tensor) -> dict[str, Any]:
    """‖F(x)‖/‖x‖ of each block, and the net without the smaller or the larger half of them, and without all."""
    sizes, h = [], model.first(x)
    for block in model.blocks:
        after = block(h)
        sizes.append(float(((after - h).norm(dim=1) / h.norm(dim=1)).mean()))
        h = after
    order = sorted(range(len(sizes)), key=sizes.__getitem__)
    few = len(order) // 4
    bare = model(x, without=range(len(sizes)))
    return {
        "term": sizes,
        "loss_without_smallest_quarter": judge(model(x, without=order[:few]), y)[0],
        "loss_without_largest_quarter": judge(model(x, without=order[-few:]), y)[0],
        "identity_without_all": bool(torch.equal(bare, model.last(model.first(x)))),
    }


def judge(logits: Tensor, y: Tensor) -> tuple[float, float]:
    """Mean loss, and share of wrong answers."""
    return float(nn.functional.cross_entropy(logits, y)), float((logits.argmax(dim=-1) != y).double().mean())


def linear(seed: int) -> dict[str, Any]:
    """A linear stack added up path by path, and the lengths of the trained stack's paths."""
    random = torch.Generator().manual_seed(seed)
    blocks = list(0.3 * torch.randn(LINEAR, 6, 6, generator=random, dtype=torch.float64))
    x = torch.randn(6, generator=random, dtype=torch.float64)
    whole, added = linear_stack(blocks, x), sum_over_paths(blocks, x)
    return {
        "paths_error": float((whole - added).abs().max() / whole.abs().max()),
        "paths": 2**BLOCKS,
        "lengths": {"of": paths_by_length(BLOCKS), "mean": mean_path_length(BLOCKS)},
    }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    residual, plain = sorted(numbers["error_without"]), sorted(numbers["plain"]["error_without"])
    return {
        "paths off": numbers["paths_error"],
        "identity without all": float(numbers["identity_without_all"]),
        "error of the whole": numbers["whole_error"],
        "error without a block": residual[-3],
        "plain without a layer": plain[len(plain) // 2],
        "plain whole": numbers["plain"]["whole_error"],
        "small terms cost": numbers["loss_without_smallest_quarter"] / numbers["loss_without_largest_quarter"],
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < ENOUGH else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Three panels: error without each block, size of the terms, lengths of the paths."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(12, 3.9), layout="constrained")
    left, middle, right = fig.subplots(1, 3)
    for name, found, colour in (("plain", numbers["plain"], "#d66820"), ("residual", numbers, "#2b6cd8")):
        errors = found["error_without"]
        left.plot(range(1, len(errors) + 1), errors, "o", color=colour, ms=4, label=name)
        left.axhline(found["whole_error"], color=colour, lw=1, ls=":")
    left.axhline(numbers["chance"], color="0.6", ls="--", lw=1)
    left.legend(frameon=False, fontsize=9)
    middle.bar(numbers["block"], numbers["term"], color="#2b6cd8")
    right.bar(range(numbers["blocks"] + 1), numbers["lengths"]["of"], color="#2b6cd8")
    titles = ("error without one block", "‖F(x)‖ / ‖x‖ of each block", "paths by length")
    for axes, title, label in zip((left, middle, right), titles, ("block", "block", "length"), strict=True):
        axes.set_title(title, fontsize=11, loc="left", fontweight="bold")
        axes.set_xlabel(label)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    return fig
