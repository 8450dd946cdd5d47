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
from descend.labs._train import train
from descend.nn.convolution.residual import Residual
from descend.theory.residual_paths import linear_stack, mean_path_length, paths_by_length, sum_over_paths

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLAIM = (
    "A residual net of n blocks acts as an ensemble of 2^n paths: with any one block removed it answers almost as"
    " well, while a plain net falls to chance; the blocks that it does not need are those with a small term."
)
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


def verdict(numbers: dict[str, Any]) -> str:
    """Supported if paths add up, the residual net survives any lesion but one or two, the plain net none.

    Survives: the error stays below 20% for all blocks but at most two. The plain net: the error is below 20%, and rises
    above 40% without its median block. The smallest quarter of the terms costs less loss than the largest.
    """
    if numbers["steps"] < ENOUGH:
        return "open"
    residual, plain = sorted(numbers["error_without"]), sorted(numbers["plain"]["error_without"])
    adds_up = numbers["paths_error"] < 1e-12 and numbers["identity_without_all"]
    survives = residual[-3] < 0.2 and numbers["whole_error"] < 0.1
    breaks = plain[len(plain) // 2] > 0.4 and numbers["plain"]["whole_error"] < 0.2
    ordered = numbers["loss_without_smallest_quarter"] < numbers["loss_without_largest_quarter"]
    return "supported" if adds_up and survives and breaks and ordered else "refuted"


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
