"""LeNet-5 on digits with ever fewer weights: pruned by magnitude, as it is and fine-tuned.

    trained     LeNet-5, 61,706 parameters, on digits of 32×32
    pruned      the share s of all its weights together is set to 0                  `nn/pruning.py`
    fine-tuned  half as many steps more, the zeros kept                              `optim/kept_zeros.py`

Accuracy on the validation and test images of scikit-learn's digits, which are not trained on. One point is one image in
a hundred. The dense network is trained on for the same steps too, so that the extra steps are not the pruned one's
advantage. MF says 50 to 90% of the size go, and gives no accuracy. Rates and steps were chosen on seeds 10 and 11.

Systems: magnitude-pruning
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional as F

from descend.data.images.digits import load_digits_split
from descend.engine.minimise import minimise
from descend.models.lenet import LeNet, LeNetConfig
from descend.nn.pruning import choose_masks, prune
from descend.optim.kept_zeros import KeepZeros
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLAIM = (
    "A LeNet with 90% of its weights set to 0 and then fine-tuned reads new digits within one point of the dense one."
)
SHARES = (0.5, 0.7, 0.8, 0.9, 0.95)
KEY = 0.9
POINT = 0.01
BATCH, LEAST = 64, 300
BUDGET = 40.0
PRICE = 10  # steps of the dense network that a second of one core buys, with all that follows them


def fit(model: LeNet, x: Tensor, y: Tensor, steps: int, lr: float, seed: int) -> None:
    """Minimise the cross-entropy; what is 0 stays 0."""
    random = torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        rows = torch.randint(len(x), (BATCH,), generator=random)
        return F.cross_entropy(model(x[rows]), y[rows])

    minimise(model.train(), loss, steps, KeepZeros(AdamW(lr, weight_decay=0.01)), Cosine(warmup=steps // 10, floor=0.0))


@torch.no_grad()
def accuracy(model: LeNet, x: Tensor, y: Tensor) -> float:
    return float((model.eval()(x).argmax(1) == y).double().mean())


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Accuracy of the dense network, and over sparsity before and after fine-tuning."""
    steps = max(20, round(PRICE * budget))
    (x, y), (held, truth) = draw(seed)
    torch.manual_seed(seed)
    model = LeNet(LeNetConfig())
    fit(model, x, y, steps, 2e-3, seed)
    dense = accuracy(model, held, truth)
    further = copy.deepcopy(model)
    fit(further, x, y, steps // 2, 1e-3, seed + 1)
    zeros, pruned, tuned = [], [], []
    for share in SHARES:
        small = copy.deepcopy(model)
        zeros.append(prune(small, choose_masks(small, share)))
        pruned.append(accuracy(small, held, truth))
        if share in (0.5, KEY):
            fit(small, x, y, steps // 2, 1e-3, seed + 1)
            assert prune(small, choose_masks(small, 0.0)) >= zeros[-1]
        tuned.append(accuracy(small, held, truth) if share in (0.5, KEY) else None)
    return {
        "sparsity": list(SHARES),
        "zeros": zeros,
        "pruned": pruned,
        "fine-tuned": tuned,
        "dense": dense,
        "dense, trained on": accuracy(further, held, truth),
        "images": len(truth),
        "steps": steps,
    }


def draw(seed: int) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Training images of 32×32 in −1..1 and their classes, and the others."""
    splits = load_digits_split(seed)
    enlarge = lambda part: F.interpolate(part.x.float() / part.x.max() * 2 - 1, size=(32, 32), mode="bilinear")
    held = torch.cat([enlarge(splits.valid), enlarge(splits.test)])
    return (enlarge(splits.train), splits.train.y), (held, torch.cat([splits.valid.y, splits.test.y]))


def verdict(numbers: dict[str, Any]) -> str:
    """Open after too few steps; else supported if the fine-tuned network is within a point of the better dense one."""
    if numbers["steps"] < LEAST:
        return "open"
    found = numbers["fine-tuned"][numbers["sparsity"].index(KEY)]
    return "supported" if max(numbers["dense"], numbers["dense, trained on"]) - found <= POINT else "refuted"


def figure(numbers: dict[str, Any]) -> Figure:
    """Accuracy over sparsity."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6, 3.6), layout="constrained")
    axes = fig.subplots()
    axes.axhline(numbers["dense"], color="0.5", linewidth=1, label="dense")
    axes.plot(numbers["sparsity"], numbers["pruned"], "o-", label="pruned")
    tuned = [(s, a) for s, a in zip(numbers["sparsity"], numbers["fine-tuned"], strict=True) if a is not None]
    axes.plot(*zip(*tuned, strict=True), "s", label="pruned and fine-tuned")
    axes.set_xlabel("share of the weights that are 0")
    axes.set_ylabel("accuracy")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
