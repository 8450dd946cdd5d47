"""What a convolutional network knows before it learns: neighbours belong together, and places are alike.

    dense      every pixel has its own weight for every unit: the order of the pixels is nothing to it
    conv       local (K×K), shared (one filter everywhere): f(T_v x) = T_v f(x), then global pooling: f(T_v x) = f(x)

Measured on scikit-learn's digits in a frame of 12×12 pixels; trained on 300 of them (a bias matters most where data are
few), a dense and a convolutional network of about 10,000 weights:

    permutation     the pixels of all images in one random order, the same for training and test
    shift           trained on centred digits, tested on digits moved by 1 and 2 pixels in every direction
    functional form y = a sin(ω x + φ) with three weights, and an MLP, fitted on |x| < π, asked at π < |x| < 3π (DLD's
                    other example of a bias; its figure is missing, so the function here is chosen)

Systems: cnn-inductive-biases
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.data.images.digits import load_digits_split
from descend.labs._evidence import Above, AtMost, Below
from descend.labs._train import train
from descend.metrics.equivariance import shift_zeros

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-A.142", "S940-DLD.177")
PRINTED = (
    "Locality, weight sharing and equivariance give better data efficiency and out-of-distribution"
    " behaviour; fully connected nets ignore the order of pixels."
)
CLAIM = (
    "A dense network learns images with shuffled pixels as well as the images themselves; a convolutional network"
    " learns them worse. On shifted digits that neither has seen the convolutional network is better."
)
PREDICTIONS = (
    AtMost("dense changed", 0.03, "How much shuffled pixels change the dense network's accuracy."),
    Above(
        "shuffling costs conv",
        0.03,
        "What shuffling costs the convolutional network beyond what it costs the dense one.",
    ),
    Above(
        "lead when shifted",
        0.2,
        "The convolutional network's accuracy at a shift of 2, less the dense one's.",
    ),
    Below(
        "right form",
        0.2,
        "Error outside the data of the fitted right form as a share of the MLP's.",
    ),
)
SCOPE = "300 digits in frames of 12×12, nets of about 10,000 weights, shifts up to 2 pixels."
FRAME, CLASSES, IMAGES, BATCH = 12, 10, 300, 64
SHIFTS = (0, 1, 2)
BUDGET = 3.0
PRICE = 65  # training steps of every network that a second of one core buys
FORM_STEPS = 200


class Wave(nn.Module):
    """a sin(ω x + φ): the right form, with three weights."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.omega, self.phi = (nn.Parameter(torch.tensor(v)) for v in (1.0, 1.0, 0.0))

    def forward(self, x: Tensor) -> Tensor:
        return self.a * (self.omega * x + self.phi).sin()


def dense() -> nn.Module:
    """144 -> 64 -> 10: 9,930 weights."""
    return nn.Sequential(nn.Flatten(), nn.Linear(FRAME**2, 64), nn.ReLU(), nn.Linear(64, CLASSES))


def convolutional() -> nn.Module:
    """Two 3×3 layers, a pool between them, the largest answer of each map: 9,784 weights."""
    first = nn.Conv2d(1, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
    second = nn.Conv2d(24, 42, 3, padding=1), nn.ReLU(), nn.AdaptiveMaxPool2d(1)
    return nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(42, CLASSES))


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Test accuracy by network and by what was done to the pixels."""
    steps = max(2, round(PRICE * budget))
    digits = load_digits_split()
    x, y = frame(digits.train.x[:IMAGES]), digits.train.y[:IMAGES]
    test = frame(torch.cat([digits.valid.x, digits.test.x]))  # nothing is chosen by either
    truth = torch.cat([digits.valid.y, digits.test.y])
    order = torch.randperm(FRAME**2, generator=torch.Generator().manual_seed(seed))
    found: dict[str, Any] = {"network": ["dense", "convolutional"]}
    columns: dict[str, list[float]] = {name: [] for name in ("original", "permuted", *(f"shift_{v}" for v in SHIFTS))}
    for build in (dense, convolutional):
        plain, mixed = (fit_model(build, f(x), y, steps, seed) for f in (same, lambda z: permute(z, order)))
        columns["original"].append(accuracy(plain, test, truth))
        columns["permuted"].append(accuracy(mixed, permute(test, order), truth))
        for v in SHIFTS:
            columns[f"shift_{v}"].append(moved_accuracy(plain, test, truth, v))
    facts = {"steps": steps, "training_images": IMAGES, "test_images": len(truth)}
    return {**found, **columns, **facts, **extrapolation(seed)}


def frame(x: Tensor) -> Tensor:
    """8×8 digits in the middle of 12×12 black pixels."""
    side = (FRAME - x.shape[-1]) // 2
    return F.pad(x, (side,) * 4)


def same(x: Tensor) -> Tensor:
    return x


def permute(x: Tensor, order: Tensor) -> Tensor:
    """The pixels of every image in the same new order."""
    return x.flatten(1)[:, order].view(x.shape)


def fit_model(build: Callable[[], nn.Module], x: Tensor, y: Tensor, steps: int, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    model, random = build(), torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        rows = torch.randint(len(x), (BATCH,), generator=random)
        return F.cross_entropy(model(x[rows]), y[rows])

    train(model, loss, steps, 1e-2)
    return model.eval()


@torch.no_grad()
def accuracy(model: nn.Module, x: Tensor, y: Tensor) -> float:
    return float((model(x).argmax(-1) == y).double().mean())


def moved_accuracy(model: nn.Module, x: Tensor, y: Tensor, v: int) -> float:
    """The mean over the four directions."""
    ways = [(v, 0), (-v, 0), (0, v), (0, -v)] if v else [(0, 0)]
    return sum(accuracy(model, shift_zeros(x, way), y) for way in ways) / len(ways)


def extrapolation(seed: int) -> dict[str, float]:
    """Root mean square error at π < |x| < 3π of the right form and of an MLP, both fitted on |x| < π."""
    random = torch.Generator().manual_seed(seed)
    x = (2 * torch.rand(256, 1, generator=random) - 1) * math.pi
    true = lambda z: 1.3 * (1.2 * z + 0.4).sin()
    y = true(x) + 0.02 * torch.randn(x.shape, generator=random)
    out = torch.cat([torch.linspace(math.pi, 3 * math.pi, 100), -torch.linspace(math.pi, 3 * math.pi, 100)])[:, None]
    errors = {}
    torch.manual_seed(seed)
    models: dict[str, nn.Module] = {"form": Wave(), "mlp": nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))}
    for name, model in models.items():
        train(model, lambda: (model(x) - y).square().mean(), FORM_STEPS, 3e-2)
        with torch.no_grad():
            errors[f"outside_error_{name}"] = float((model(out) - true(out)).square().mean().sqrt())
    return errors


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    (dense_first, conv_first), (dense_mixed, conv_mixed) = numbers["original"], numbers["permuted"]
    dense_moved, conv_moved = numbers["shift_2"]
    return {
        "dense changed": abs(dense_first - dense_mixed),
        "shuffling costs conv": conv_first - conv_mixed - max(0.0, dense_first - dense_mixed),
        "lead when shifted": conv_moved - dense_moved,
        "right form": numbers["outside_error_form"] / numbers["outside_error_mlp"],
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < 60 else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Left: accuracy with and without permutation. Right: accuracy against the shift."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(9, 3.9), layout="constrained")
    left, right = fig.subplots(1, 2)
    for i, (name, colour) in enumerate(zip(numbers["network"], ("#d66820", "#2b6cd8"), strict=True)):
        bars = [numbers["original"][i], numbers["permuted"][i]]
        left.bar([0.38 * i, 1 + 0.38 * i], bars, 0.36, color=colour, label=name)
        right.plot(SHIFTS, [numbers[f"shift_{v}"][i] for v in SHIFTS], "o-", color=colour, label=name)
    left.set_xticks([0.19, 1.19], ["pixels in order", "pixels permuted"])
    right.set_xticks(SHIFTS)
    right.set_xlabel("shift in pixels")
    for axes, title in ((left, "order of the pixels"), (right, "shifted test digits")):
        axes.set_ylim(0, 1.02)
        axes.set_title(title, fontsize=11, loc="left", fontweight="bold")
        axes.set_ylabel("test accuracy")
        axes.legend(frameon=False, fontsize=9, loc="lower left")
        axes.spines[["top", "right"]].set_visible(False)
    return fig
