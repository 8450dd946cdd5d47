"""BEiT with few labels: an encoder that has filled in hidden patches beside the same encoder from scratch.

    pre-trained    1,258 digits without their classes: 40% of the patches are hidden, their visual tokens are predicted
    fine-tuned     40 of them with classes: the encoder starts with the pre-trained vectors
    from scratch   the same 40, steps and augmentation; random vectors

MF names BEiT and gives neither a formula nor a number; tokens, blocks and the fine-tuning are the paper's, the visual
tokens those of a codebook of 32 patches. Accuracy is of 539 digits that are not trained on, the mean over draws of the
40. Both get the better of two rates, so that what suits the one is not held against the other. Sizes and steps were
chosen on seeds 10 and 11: with 100 labels and 1,200 steps of pre-training, seed 10 showed no gain.

Systems: beit
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional as F

from descend.data.images.hidden_patches import Hide, Hiding
from descend.data.images.warp import Warp
from descend.labs._digit_classes import Digits, measure_accuracy, read_digits, train_on
from descend.labs._evidence import AtLeast
from descend.models.beit import BeitConfig, BeitForImageClassification, BeitForMaskedImageModeling, fine_tuned
from descend.nn.codebook import Codebook
from descend.nn.patches import patchify
from descend.weights.labels import Labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("MF-B.117",)
PRINTED = "BEiT pre-trains a vision transformer as BERT is: patches are hidden and predicted."
CLAIM = "With few labels a BEiT that was pre-trained on hidden patches reads more digits than one from scratch."
PREDICTIONS = (
    AtLeast(
        "gain over scratch",
        0.02,
        "fine-tuned on 40 labels it reads at least 2 of 100 digits more than the same network from scratch, on average "
        "over draws of the labels; a smaller gain, or none, refutes it",
    ),
)
SCOPE = "a transformer of 100,000 weights, 8×8 digits in patches of 2×2, a codebook and not a trained dVAE"
BUDGET = 120.0
PRICE = 25  # steps of pre-training that a second of one core buys, with all that follows
LEAST = 2000
LABELS, DRAWS, STEPS, BATCH = 40, 6, 200, 50
RATES = (3e-3, 1e-2)
HIDING, PATCH = Hiding(share=0.4, smallest=2), 2
WARP = Warp(shift=0.06, turn=10.0, zoom=0.1)
CONFIG = BeitConfig(
    vocab=32, channels=1, side=8, patch=PATCH, width=48, depth=3, heads=4, hidden=192, drop_path=0.0, eps=1e-6,
    scale=1.0, mask_token=True, absolute=True, shared_bias=True, labels=Labels(tuple("0123456789")),
)  # fmt: skip


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Accuracy of both at either rate, the mean over draws of the labelled digits, and the loss of pre-training."""
    steps = max(20, round(PRICE * budget))
    everything, held = read_digits()
    torch.manual_seed(seed)
    encoder = BeitForMaskedImageModeling(CONFIG)
    losses = pretrain(encoder, everything, steps, seed)
    draws = DRAWS if steps >= LEAST else 1
    columns: dict[str, list[float]] = {"rate": list(RATES), "fine-tuned": [], "scratch": []}
    for rate in RATES:
        for name in ("fine-tuned", "scratch"):
            found = []
            for number in range(100 * seed, 100 * seed + draws):
                torch.manual_seed(number)
                begun = encoder if name == "fine-tuned" else BeitForMaskedImageModeling(CONFIG)
                model = fine_tuned(begun, CONFIG.labels)
                classify(model, everything.draw(LABELS, number), rate, number)
                found.append(measure_accuracy(model, held))
            columns[name].append(statistics.mean(found))
    return {**columns, "steps": steps, "labels": LABELS, "first loss": losses[0], "last loss": losses[-1]}


def pretrain(model: BeitForMaskedImageModeling, given: Digits, steps: int, seed: int) -> list[float]:
    """Predict the visual tokens of hidden patches; the mean loss of the first and of the last steps."""
    codes = Codebook.learn(patchify(given.x, PATCH).flatten(0, 1), CONFIG.vocab, torch.Generator().manual_seed(seed))
    hide, random = Hide(HIDING, PATCH, codes), torch.Generator().manual_seed(seed)
    losses: list[float] = []

    def loss(x: Tensor, y: Tensor) -> Tensor:
        x = WARP(x, torch.rand(len(x), WARP.chance, generator=random) * 2 - 1)
        batch = hide({"x": x}, seed, len(x) * len(losses) + torch.arange(len(x)))
        found = F.cross_entropy(model(batch["x"], batch["hide"]), batch["y"][batch["hide"]])
        losses.append(float(found.detach()))
        return found

    train_on(model, loss, given, steps, 2e-3, seed, BATCH)
    few = max(1, steps // 10)
    return [sum(losses[:few]) / few, sum(losses[-few:]) / few]


def classify(model: BeitForImageClassification, given: Digits, rate: float, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)

    def loss(x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(model(WARP(x, torch.rand(len(x), WARP.chance, generator=random) * 2 - 1)), y)

    train_on(model, loss, given, STEPS, rate, seed, BATCH)


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    return {"gain over scratch": max(numbers["fine-tuned"]) - max(numbers["scratch"])}


def needs(numbers: dict[str, Any]) -> float:
    return 0.0 if numbers["steps"] >= LEAST else LEAST / PRICE


def figure(numbers: dict[str, Any]) -> Figure:
    """Accuracy at either rate."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6, 3.6), layout="constrained")
    axes = fig.subplots()
    for name in ("fine-tuned", "scratch"):
        axes.plot(numbers["rate"], numbers[name], "o-", label=name)
    axes.set_xscale("log")
    axes.set_xlabel("learning rate")
    axes.set_ylabel(f"accuracy after {numbers['labels']} labels")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
