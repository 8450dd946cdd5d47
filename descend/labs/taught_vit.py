"""DeiT on few images: a vision transformer that a convolutional network teaches, beside the same one alone.

    teacher    a CNN of 7,930 weights, trained on the same 150 digits
    DeiT       a second token and a second head:  ½ CE(z_c, y) + ½ CE(z_d, argmax teacher)      `losses/distillation.py`
    alone      a ViT of the same width and depth, one token and one head:  CE(z_c, y)

Everybody sees the same 150 images, warped, in the same order; the teacher has seen no others. What it says of a warped
image is not always the label: this, and its sense for what lies side by side, is what it has to give. MF names DeiT
("ViT trained with distillation for smaller data") and gives no number. Accuracy is of 539 digits that nobody was
trained on, over several draws. Sizes, steps and rates were chosen on seed 10.

Systems: deit
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.data.images.warp import Warp
from descend.labs._digit_classes import Digits, Loss, measure_accuracy, read_digits, train_on
from descend.labs._evidence import Above, AtLeast
from descend.losses.distillation import hard_distillation
from descend.models.deit import DeiTConfig, DeiTForImageClassificationWithTeacher
from descend.models.typical_cnn import TypicalCNN, TypicalCNNConfig
from descend.models.vit import ViTConfig, ViTForImageClassification
from descend.weights.labels import Labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("MF-B.115",)
PRINTED = "DeiT is a ViT that is trained with distillation, for smaller data."
CLAIM = "With few images a vision transformer taught by a convolutional network reads more digits than one alone."
PREDICTIONS = (
    AtLeast(
        "gain over the ViT",
        0.01,
        "taught, it reads at least 1 of 100 digits more than the plain ViT, on average over draws; a smaller gain, or "
        "none, refutes it",
    ),
)
CONTROLS = (Above("teacher above the ViT", 0.0, "with few images the convolutional network is ahead"),)
SCOPE = "transformers of 30,000 weights on 8×8 digits, hundreds of images and not a million"
BUDGET = 60.0
PRICE = 0.1  # draws that a second of one core buys
IMAGES, STEPS, BATCH, RATE = 150, 300, 50, 3e-3
SIZES = {"channels": 1, "side": 8, "patch": 2, "width": 32, "depth": 2, "heads": 4, "hidden": 64, "eps": 1e-6}
WARP = Warp(shift=0.1, turn=15.0, zoom=0.15)


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Accuracy of all three, for every draw of images and start."""
    draws = max(1, round(PRICE * budget))
    everything, held = read_digits()
    columns: dict[str, list[float]] = {name: [] for name in ("teacher", "alone", "taught")}
    for draw in range(draws):
        number = 100 * seed + draw
        given = everything.draw(IMAGES, number)
        teacher, alone, taught = build(number)
        learn(teacher, label_loss(teacher), given, number)
        teacher.eval()
        learn(alone, label_loss(alone), given, number)
        learn(taught, make_loss(taught, teacher), given, number)
        for name, model in (("teacher", teacher), ("alone", alone), ("taught", taught)):
            columns[name].append(measure_accuracy(model, held))
    return {**columns, "images": IMAGES, "steps": STEPS}


def build(seed: int) -> tuple[nn.Module, nn.Module, DeiTForImageClassificationWithTeacher]:
    """Teacher, ViT and DeiT; weights N(0, 1/n): the released N(0, 0.02²) is for wide models."""
    torch.manual_seed(seed)
    teacher = TypicalCNN(TypicalCNNConfig(image=(1, 8, 8), widths=(16, 32), convs=1, kernel=3, hidden=(32,)))
    labels = Labels(tuple("0123456789"))
    alone = ViTForImageClassification(ViTConfig(**SIZES, labels=labels))  # type: ignore[arg-type]
    taught = DeiTForImageClassificationWithTeacher(DeiTConfig(**SIZES, labels=labels))  # type: ignore[arg-type]
    for model in (alone, taught):
        for layer in model.modules():
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, std=layer.in_features**-0.5)
    return teacher, alone, taught


def label_loss(model: nn.Module) -> Loss:
    return lambda x, y: F.cross_entropy(model(x), y)


def make_loss(student: DeiTForImageClassificationWithTeacher, teacher: nn.Module) -> Loss:
    def loss(x: Tensor, y: Tensor) -> Tensor:
        with torch.no_grad():
            says = teacher(x)
        return hard_distillation(*student.both(x), says, y).mean()

    return loss


def learn(model: nn.Module, loss: Loss, given: Digits, seed: int) -> None:
    """On warped images, the same for everyone with this seed."""
    random = torch.Generator().manual_seed(seed)

    def warped(x: Tensor, y: Tensor) -> Tensor:
        return loss(WARP(x, torch.rand(len(x), WARP.chance, generator=random) * 2 - 1), y)

    train_on(model, warped, given, STEPS, RATE, seed, BATCH)


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    mean = {name: statistics.mean(numbers[name]) for name in ("teacher", "alone", "taught")}
    return {
        "gain over the ViT": mean["taught"] - mean["alone"],
        "teacher above the ViT": mean["teacher"] - mean["alone"],
    }


def needs(numbers: dict[str, Any]) -> float:
    return 0.0 if len(numbers["alone"]) >= 4 else 4 / PRICE


def figure(numbers: dict[str, Any]) -> Figure:
    """Accuracy of each draw."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6, 3.6), layout="constrained")
    axes = fig.subplots()
    for place, name in enumerate(("teacher", "alone", "taught")):
        axes.plot([place] * len(numbers[name]), numbers[name], "o", alpha=0.6)
    axes.set_xticks(range(3), ["CNN, the teacher", "ViT alone", "DeiT, taught"])
    axes.set_ylabel("accuracy")
    axes.spines[["top", "right"]].set_visible(False)
    return fig
