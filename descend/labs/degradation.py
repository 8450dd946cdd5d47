"""Degradation: a deeper plain net has a higher TRAINING error, although it could copy the shallower one.

    plain       x_{l+1} = ReLU(F(x_l))              residual       x_{l+1} = ReLU(F(x_l) + x_l)
    deep = shallow, then layers that compute the identity: the same function, so the best deep net is no worse

Four nets of 6n + 2 layers with batch norm (`descend.models.resnet_cifar`), 20 and 56 layers, plain and residual with as
many weights, see the same batches of scikit-learn's 8×8 digits under SGD with momentum. What is compared is error and
loss on the training images themselves: this is not overfitting. It is not a vanishing gradient either: the norm of the
stem's gradient before the first step is reported, and grows with the depth of a plain net. The identity construction is
run too: identity convolutions with ReLU behind a ReLU change nothing, exactly, since ReLU(z) = z for z ≥ 0.

Each net makes the same number of steps; below 150 of them nothing is claimed. The books compare training errors, and so
does the verdict; a ratio of losses flipped with the seed once all errors but one were below 1%.

Systems: degradation-experiment
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from descend.data.images.digits import load_digits_split
from descend.engine.minimise import take_steps
from descend.labs._evidence import Above, AtMost, Below
from descend.models.resnet_cifar import ResNetCifar, ResNetCifarConfig
from descend.nn.convolution.residual import channels_last
from descend.optim.rules import ShiftedNesterov
from descend.optim.schedules import Cosine

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-A.168", "S940-DLD.48")
PRINTED = (
    "Deeper plain nets get a higher TRAINING error although copies of a shallow net exist; beyond"
    " about 20 layers training accuracy falls, and residual connections cure it."
)
CLAIM = (
    "A plain net of 56 layers has a higher training error than one of 20 layers trained the same way; with residual"
    " connections it does not, and each residual net learns better than its plain twin."
)
PREDICTIONS = (
    Above(
        "plain 56 worse",
        3,
        "Training error of plain 56 less that of plain 20, in standard errors of the difference.",
    ),
    AtMost("residual 56 worse", 3, "The same for residual 56 against plain 20."),
    Below(
        "loss of residual",
        1,
        "The larger ratio of the losses of a residual net and its plain twin.",
    ),
    AtMost(
        "identity changes",
        0,
        "What layers that compute the identity change of the output: nothing.",
    ),
)
SCOPE = "Nets of 20 and 56 layers of width 8 on 8×8 digits, equally many steps."
NETS = (("plain", 20), ("plain", 56), ("residual", 20), ("residual", 56))
WIDTH, BATCH, LR, MOMENTUM, DECAY = 8, 64, 0.1, 0.9, 1e-4
BUDGET = 22.0
PRICE = 9  # steps of all four nets that a second of one core buys
ENOUGH = 150  # steps below which nothing is claimed
POINTS = 40  # of the curves


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Training loss and error of the four nets after equally many steps."""
    steps = max(2, round(PRICE * budget))
    train = load_digits_split().train
    x, y = (train.x - train.x.mean()) / train.x.std(), train.y
    columns: dict[str, list[Any]] = {name: [] for name in ("net", "layers", "loss", "error", "first_gradient")}
    curves: dict[str, list[float]] = {}
    for block, layers in NETS:
        torch.manual_seed(seed)
        model = ResNetCifar(ResNetCifarConfig(image=(1, 8, 8), layers=layers, width=WIDTH, block=block))
        curve, gradient = descend(model, x, y, steps, torch.Generator().manual_seed(seed))
        loss, error = judge(model, x, y)
        for name, value in zip(columns, (block, layers, loss, error, gradient), strict=True):
            columns[name].append(value)
        curves[f"{block} {layers}"] = thin(curve)
    return {
        **columns,
        "steps": steps,
        "images": len(y),
        "identity_layers_change": identity_change(seed),
        "curves": curves,
    }


def descend(model: nn.Module, x: Tensor, y: Tensor, steps: int, random: torch.Generator) -> tuple[list[float], float]:
    """SGD with a short warm-up and a cosine: the losses on the way, and the norm of the stem's first gradient."""

    def loss() -> Tensor:
        rows = torch.randint(len(y), (BATCH,), generator=random)
        return nn.functional.cross_entropy(model(x[rows]), y[rows])

    losses: list[float] = []
    first, stem = 0.0, next(model.parameters())
    schedule = Cosine(warmup=steps // 20, floor=0.0)
    for value in take_steps(model, loss, steps, ShiftedNesterov(LR, MOMENTUM, DECAY), schedule):
        if not losses and stem.grad is not None:
            first = float(stem.grad.norm())
        losses.append(value)
    return losses, first


@torch.no_grad()
def judge(model: nn.Module, x: Tensor, y: Tensor) -> tuple[float, float]:
    """Loss and share of wrong answers on all the training images, as the trained net answers."""
    logits = model.eval()(channels_last(x))
    return float(nn.functional.cross_entropy(logits, y)), float((logits.argmax(dim=-1) != y).double().mean())


def append_identities(shallow: nn.Module, channels: int, count: int) -> nn.Sequential:
    """The net with this many identity convolutions behind it, each followed by ReLU; its output must be a ReLU's."""
    layers: list[nn.Module] = []
    for _ in range(count):
        layer = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        nn.init.dirac_(layer.weight)
        layers += [layer, nn.ReLU()]
    return nn.Sequential(shallow, *layers)


@torch.no_grad()
def identity_change(seed: int) -> float:
    """The largest difference that 30 identity layers make."""
    torch.manual_seed(seed)
    shallow, x = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU()), torch.randn(4, 3, 8, 8)
    return float((append_identities(shallow, 8, 30)(x) - shallow(x)).abs().max())


def thin(curve: list[float]) -> list[float]:
    """Means over POINTS stretches of the curve, or the curve itself when it is shorter."""
    size = max(1, len(curve) // POINTS)
    return [sum(curve[i : i + size]) / size for i in range(0, len(curve) - size + 1, size)]


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    pairs = list(zip(numbers["net"], numbers["layers"], strict=True))
    loss, error = (dict(zip(pairs, numbers[name], strict=True)) for name in ("loss", "error"))
    shallow, n = error["plain", 20], numbers["images"]
    worse = {net: error[net, 56] - shallow for net in ("plain", "residual")}
    errors = {net: max(standard_error(error[net, 56], shallow, n), 1e-9) for net in worse}
    return {
        "plain 56 worse": worse["plain"] / errors["plain"],
        "residual 56 worse": worse["residual"] / errors["residual"],
        "loss of residual": max(loss["residual", layers] / loss["plain", layers] for layers in (20, 56)),
        "identity changes": float(numbers["identity_layers_change"]),
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < ENOUGH else 0.0


def standard_error(p: float, q: float, n: int) -> float:
    """Of the difference of two shares of n."""
    return math.sqrt((p * (1 - p) + q * (1 - q)) / n)


def figure(numbers: dict[str, Any]) -> Figure:
    """Training loss against steps: dashed 20 layers, solid 56; left plain, right residual."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(10, 3.9), layout="constrained")
    panels = fig.subplots(1, 2, sharey=True)
    for axes, block, colour in zip(panels, ("plain", "residual"), ("#d66820", "#2b6cd8"), strict=True):
        for layers, style in ((20, "--"), (56, "-")):
            curve = numbers["curves"][f"{block} {layers}"]
            at = [numbers["steps"] * (i + 0.5) / len(curve) for i in range(len(curve))]
            axes.plot(at, curve, style, color=colour, lw=1.8, label=f"{layers} layers")
        axes.set_yscale("log")
        axes.set_title(f"{block}: training loss", fontsize=11, loc="left", fontweight="bold")
        axes.set_xlabel("step")
        axes.legend(frameon=False, fontsize=9)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    return fig
