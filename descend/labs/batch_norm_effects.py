"""What batch normalization does for training: learning rates, initial scales, small batches, the landscape, the shift.

    ẑ = (z − μ) / √(σ² + ε) over the batch,   a = relu(γ ẑ + β)          without: a = relu(z + β)

Nets of four hidden layers of 64 units learn the embedded digits for 100 steps of gradient descent, 32 images per step,
He's weights times a scale; all nets of one kind are trained at once, as one tensor with the nets in front. Measured:

    rates       accuracy on held-out images at each learning rate, with and without
    scales      the same at each scale of the initial weights, at the rate 0.1
    chunks      the same when the statistics come from chunks of 2, 4, 8 or 32 of the 32 images; the gradient is still
                that of 32, so that only the noise of the statistics changes
    change      how far a step turns its own gradient, ‖g' − g‖ / ‖g‖ on the same images: small in a smooth landscape
    shift       how far a step moves the mean of a unit's z in the third layer, in its standard deviations
    undo        γ = σ and β = μ give back z: the net can undo the normalization

DLN credits the smoother landscape (Santurkar), S940 a smaller shift of the layers' inputs. Change and shift are both
smaller with batch normalization wherever the plain net trains, so this experiment does not decide between them. At
higher rates the plain net diverges, and counts with the steps before, or its units die, and its gradient says nothing.

Systems: batch-norm-effects
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.data.images.digits import load_digits_split
from descend.labs._evidence import Above, AtLeast, Below
from descend.losses.classification import cross_entropy
from descend.nn.init import he
from descend.ops.normalization import batch_norm, moments, moving, normalize, scale_and_shift, standard_deviation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENTRIES = ("DLN-A.114", "S940-DLD.36")
PRINTED = (
    "Batch normalization allows larger learning rates, is less sensitive to the initial scale,"
    " smooths the landscape (DLN) or shifts inputs less (S940), γ and β can undo it; it degrades for"
    " small batches."
)
CLAIM = (
    "With batch normalization a net trains at learning rates and initial scales at which the plain net fails, a step"
    " turns its gradient less and shifts the inputs of its layers less, and γ and β can undo it; but its accuracy falls"
    " when the statistics come from very few examples."
)
PREDICTIONS = (
    Above(
        "gain in rate",
        0,
        "log10 of the largest rate that trains with batch normalization over that without.",
    ),
    Above("gain in scales", 0, "How many more initial scales train with it."),
    Below(
        "gradient turned",
        1,
        "At the rates at which both train, the largest ratio of change of the gradient in a step, with over without.",
    ),
    Below("inputs shifted", 1, "The same for the shift of the third layer's inputs."),
    Above(
        "lost in chunks of 2",
        0.05,
        "Accuracy with statistics of 32 less that with statistics of 2.",
    ),
    Below("undo error", 1e-5, "What γ = σ and β = μ leave of the normalization: rounding."),
)
CONTROLS = (
    AtLeast(
        "trained at all",
        1,
        "How many rates train, the lesser of both nets: with none there is nothing to compare.",
    ),
)
SCOPE = (
    'Nets of 4 hidden layers of width 64 on 8×8 digits, 100 steps of gradient descent; "implicit'
    ' regularization" is not tested.'
)
RATES = (0.03, 0.1, 0.3, 1.0, 3.0)
SCALES = (0.1, 0.3, 1.0, 3.0, 10.0)
CHUNKS = (2, 4, 8, 32)
WIDTH, HIDDEN, CLASSES, BATCH, STEPS = 64, 4, 10, 32, 100
EPS, ALPHA = 1e-5, 0.9
TRAINED = 0.75  # accuracy from which on a net counts as trained
BUDGET = 8.0
PRICE = 0.6  # rounds, each with new weights and batches, that a second of one core buys


@dataclass
class Nets:
    """k nets side by side: weights (k, in, out), gains and shifts (k, 1, width), moving statistics of each layer."""

    weights: list[Tensor]
    gammas: list[Tensor]
    betas: list[Tensor]
    running: list[tuple[Tensor, Tensor]]
    chunk: int
    """Examples that share their statistics; 0: no normalization."""

    def __call__(self, x: Tensor, training: bool) -> tuple[Tensor, list[Tensor]]:
        """Logits (k, b, classes) of images (b, pixels), and z of each hidden layer (k, b, width)."""
        a, seen = x.expand(len(self.weights[0]), *x.shape), []
        for layer, (w, gamma, beta) in enumerate(zip(self.weights[:-1], self.gammas, self.betas, strict=True)):
            z = a @ w
            seen.append(z)
            z_hat = self.normalize_chunks(z, layer, training) if self.chunk else z
            a = torch.relu((gamma * z_hat if self.chunk else z_hat) + beta)
        return a @ self.weights[-1], seen

    def normalize_chunks(self, z: Tensor, layer: int, training: bool) -> Tensor:
        """By the statistics of each chunk in training, by the moving ones (of the unbiased variance) in use."""
        if not training:
            return normalize(z, *self.running[layer], EPS)
        chunks = z.unflatten(1, (-1, self.chunk))
        mu, var = moments(chunks, (2,))
        now = mu.mean(1), var.mean(1) * self.chunk / (self.chunk - 1)
        old = self.running[layer]
        self.running[layer] = moving(old[0], now[0].detach(), ALPHA), moving(old[1], now[1].detach(), ALPHA)
        return normalize(chunks, mu, var, EPS).flatten(1, 2)

    @property
    def parameters(self) -> list[Tensor]:
        return [*self.weights, *self.betas, *(self.gammas if self.chunk else [])]


def build(scales: Tensor, chunk: int, random: torch.Generator) -> Nets:
    """One net for each scale; all start from the same draw."""
    widths = [WIDTH] * (HIDDEN + 1) + [CLASSES]
    k = len(scales)
    weights = [
        scales[:, None, None] * he(n, out) ** 0.5 * torch.randn(n, out, generator=random) for n, out in pairwise(widths)
    ]
    ones, zeros = ([fill(k, 1, WIDTH) for _ in range(HIDDEN)] for fill in (torch.ones, torch.zeros))
    running = [(torch.zeros(k, 1, WIDTH), torch.ones(k, 1, WIDTH)) for _ in range(HIDDEN)]
    return Nets(weights, ones, zeros, running, chunk)


def gradients(nets: Nets, x: Tensor, y: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Gradients of every net's own mean loss, and z of each hidden layer."""
    of = nets.parameters
    for parameter in of:
        parameter.requires_grad_()
    logits, seen = nets(x, training=True)
    loss = cross_entropy(logits, y.expand(len(logits), -1)).mean(1).sum()
    found = torch.autograd.grad(loss, of)
    for parameter in of:
        parameter.requires_grad_(False)
    return list(found), [z.detach() for z in seen]


def train(nets: Nets, rates: Tensor, x: Tensor, y: Tensor, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Gradient descent with a rate for each net; the gradient's change and the shift (k) of the median step."""
    changes, shifts = [], []
    for step in range(STEPS):
        rows = torch.randint(len(x), (BATCH,), generator=random)
        before, seen = gradients(nets, x[rows], y[rows])
        for parameter, gradient in zip(nets.parameters, before, strict=True):
            parameter -= rates[:, None, None] * gradient
        if step % 5 == 0:
            after, moved = gradients(nets, x[rows], y[rows])
            changes.append(length(subtract(after, before)) / length(before))
            mu, var = moments(seen[2], (1,))
            shifts.append(((moved[2].mean(1, keepdim=True) - mu).abs() / standard_deviation(var, EPS)).mean((1, 2)))
    return typical(changes), typical(shifts)


def typical(rows: list[Tensor]) -> Tensor:
    """Medians over the steps, without those after a net has diverged."""
    return torch.stack([torch.where(row.isfinite(), row, torch.nan) for row in rows]).nanmedian(0).values


def length(gradient: list[Tensor]) -> Tensor:
    """‖g‖ of each net (k)."""
    return torch.stack([part.square().sum((1, 2)) for part in gradient]).sum(0).sqrt()


def subtract(left: list[Tensor], right: list[Tensor]) -> list[Tensor]:
    return [a - b for a, b in zip(left, right, strict=True)]


def accuracy(nets: Nets, x: Tensor, y: Tensor) -> Tensor:
    """Share of images (b) that each net (k) gets right; a net that has diverged gets none."""
    logits, _ = nets(x, training=False)
    right = (logits.argmax(-1) == y) & logits.isfinite().all(-1)
    return right.double().mean(-1)


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Accuracy over rates, scales and chunks; the gradient's change and the shift at each rate."""
    rounds = max(1, round(PRICE * budget))
    digits = load_digits_split()
    (x, y), (vx, vy) = ((part.x.flatten(1), part.y) for part in (digits.train, digits.valid))
    found: dict[str, list[Tensor]] = {}
    for number in range(rounds):
        at = seed * 1000 + number
        scales = torch.tensor([1.0] * len(RATES) + list(SCALES))
        rates = torch.tensor([*RATES] + [0.1] * len(SCALES))
        for name, chunk in (("plain", 0), ("batch_norm", BATCH)):
            nets = build(scales, chunk, torch.Generator().manual_seed(at))
            change, shift = train(nets, rates, x, y, torch.Generator().manual_seed(at))
            found.setdefault(name, []).append(accuracy(nets, vx, vy))
            found.setdefault(f"{name}_change", []).append(change)
            found.setdefault(f"{name}_shift", []).append(shift)
        for chunk in CHUNKS:
            nets = build(torch.ones(1), chunk, torch.Generator().manual_seed(at))
            train(nets, torch.tensor([0.1]), x, y, torch.Generator().manual_seed(at))
            found.setdefault(f"chunk_{chunk}", []).append(accuracy(nets, vx, vy))
    means = {name: torch.stack(rows).double().mean(0).tolist() for name, rows in found.items()}
    n = len(RATES)
    kinds = ("plain", "batch_norm", "plain_change", "batch_norm_change", "plain_shift", "batch_norm_shift")
    return {
        "rate": list(RATES),
        **{name: means[name][:n] for name in kinds},
        "rounds": rounds,
        "undo_error": undo(x[:BATCH]),
        "scales": {"scale": list(SCALES), "plain": means["plain"][n:], "batch_norm": means["batch_norm"][n:]},
        "chunks": {"examples": list(CHUNKS), "accuracy": [means[f"chunk_{c}"][0] for c in CHUNKS]},
    }


def undo(z: Tensor) -> float:
    """How far γ = √(σ² + ε), β = μ after batch normalization are from giving z back."""
    mu, var = moments(z, (0,))
    return (scale_and_shift(batch_norm(z, EPS), standard_deviation(var, EPS), mu) - z).abs().max().item()


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    trained = {name: [a >= TRAINED for a in numbers[name]] for name in ("plain", "batch_norm")}
    rates = {name: [r for r, ok in zip(numbers["rate"], at, strict=True) if ok] for name, at in trained.items()}
    if not all(rates.values()):
        unknown = (
            "gain in rate",
            "gain in scales",
            "gradient turned",
            "inputs shifted",
            "lost in chunks of 2",
            "undo error",
        )
        return {**dict.fromkeys(unknown, math.nan), "trained at all": 0.0}
    scales = {name: sum(a >= TRAINED for a in numbers["scales"][name]) for name in trained}
    accuracies = numbers["chunks"]["accuracy"]
    return {
        "gain in rate": math.log10(max(rates["batch_norm"]) / max(rates["plain"])),
        "gain in scales": scales["batch_norm"] - scales["plain"],
        "gradient turned": worst_ratio(numbers, "change", trained),
        "inputs shifted": worst_ratio(numbers, "shift", trained),
        "lost in chunks of 2": accuracies[-1] - accuracies[0],
        "undo error": numbers["undo_error"],
        "trained at all": min(len(found) for found in rates.values()),
    }


def worst_ratio(numbers: dict[str, Any], name: str, trained: dict[str, list[bool]]) -> float:
    """The largest ratio of what batch normalization and the plain net show, at the rates at which both train."""
    rows = zip(numbers[f"batch_norm_{name}"], numbers[f"plain_{name}"], *trained.values(), strict=True)
    return max((normed / plain for normed, plain, *both in rows if all(both)), default=math.nan)


def figure(numbers: dict[str, Any]) -> Figure:
    """Four panels: accuracy over rates, scales and chunks, and the gradient's change over rates."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(15, 3.7), layout="constrained")
    first, second, third, fourth = fig.subplots(1, 4)
    scales, chunks = numbers["scales"], numbers["chunks"]
    pair(first, numbers["rate"], numbers["plain"], numbers["batch_norm"], "accuracy", "learning rate")
    pair(second, scales["scale"], scales["plain"], scales["batch_norm"], "accuracy", "scale of the weights")
    third.plot(chunks["examples"], chunks["accuracy"], "o-", color="#2b6cd8", ms=4)
    finish(third, "accuracy", "examples in the statistics")
    third.set_xscale("log", base=2)
    change = numbers["plain_change"], numbers["batch_norm_change"]
    pair(fourth, numbers["rate"], *change, "change of the gradient in a step", "learning rate")
    fourth.set_yscale("log")
    for axes in (first, second, third):
        axes.set_ylim(0, 1.02)
    first.legend(frameon=False, fontsize=9)
    return fig


def pair(axes: Axes, x: list[float], plain: list[float], normed: list[float], title: str, label: str) -> None:
    """The plain net and the one with batch normalization."""
    axes.plot(x, plain, "o-", color="#d66820", ms=4, label="plain")
    axes.plot(x, normed, "o-", color="#2b6cd8", ms=4, label="batch norm")
    axes.set_xscale("log")
    finish(axes, title, label)


def finish(axes: Axes, title: str, label: str) -> None:
    axes.set_title(title, fontsize=11, loc="left", fontweight="bold")
    axes.set_xlabel(label)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
