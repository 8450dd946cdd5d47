"""Does a hard task emerge, and can an easy one foretell when?

    a step       reading one handwritten digit; networks of 1 to 64 hidden units, trained alike
    the task     reading a number of k digits: right when all are (exact match, p^k if the digits are independent)
    smooth       the mean log-probability of the whole number
    prediction   from two-digit numbers read by the four smallest networks: logit of p against log N, then p^5; where do
                 five-digit numbers reach a half, and how well do the larger, held-out networks read them?

VOM 14.5.3 names proxies (two-digit for five-digit addition) without a method; the one here is ours. 14.5.2: accuracy
jumps where log-probability changes smoothly; measured is how much of its rise each makes in its steepest step of size.

Systems: composite-task-emergence, emergent-abilities, task-accuracy-sigmoid
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.errors import Mistake
from descend.labs._digit_classes import read_digits
from descend.labs._evidence import AtLeast, AtMost
from descend.labs._log_lines import Curve, Panel, draw_panels
from descend.labs._train import train
from descend.seeds import generator
from descend.theory.emergence import composite, fit_steps, fit_task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("VOM-B.125", "VOM-B.126", "MF-B.45", "S940-DLD.156", "VOM-B.135")
PRINTED = "Abilities appear suddenly with scale; composite accuracy is p^k, and proxies may foretell it."
CLAIM = (
    "Reading long numbers appears at once by exact match and smoothly by log-probability, and short ones foretell it."
)
PREDICTIONS = (
    AtMost("whole numbers against p^5", 0.03, "the five-digit accuracy is the digit's to the fifth, within 3 points"),
    AtLeast(
        "digit read before numbers are",
        0.3,
        "where five-digit numbers stay below 5%, digits are already read this often",
    ),
    AtMost("error of the foretold accuracy", 0.15, "mean over the held-out networks; 0.5 would be no foresight"),
    AtMost(
        "error from the loss", 0.05, "a sigmoid of the loss fitted to the others gives a held-out network's accuracy"
    ),
)
SCOPE = "one hidden layer on 8×8 digits; a number is made of independent digits, so that p^k has every chance"
BUDGET = 8.0
PRICE = 100  # steps of each network that a second buys
WIDTHS, BATCH, RATE, NUMBERS, LEAST = (1, 2, 3, 4, 6, 8, 12, 16, 32, 64), 64, 1e-2, 20000, 300
SMALL, LENGTHS = 5, (1, 2, 5)


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Accuracy by size and length of the number, and mean log-probabilities."""
    steps = max(10, round(PRICE * budget))
    given, held = read_digits()
    rows = torch.randint(len(held.y), (NUMBERS, max(LENGTHS)), generator=generator(seed, 2))
    columns: dict[str, Any] = {"width": list(WIDTHS), "parameters": [], "loss": []}
    columns |= {f"{what} {k}": [] for k in LENGTHS for what in ("exact", "log")}
    for width in WIDTHS:
        model = fit(given.x.flatten(1), given.y, width, steps, seed)
        with torch.no_grad():
            log = model(held.x.flatten(1)).log_softmax(-1)
        right, sure = log.argmax(-1) == held.y, log.gather(1, held.y[:, None])[:, 0].clamp_min(-12)
        columns["parameters"].append(sum(p.numel() for p in model.parameters()))
        columns["loss"].append(float(F.nll_loss(log, held.y)))
        for k in LENGTHS:
            columns[f"exact {k}"].append(float(right[rows[:, :k]].all(1).double().mean()))
            columns[f"log {k}"].append(float(sure[rows[:, :k]].sum(1).double().mean()))
    return {**columns, "steps": steps, **foretell(columns)}


def fit(x: Tensor, y: Tensor, width: int, steps: int, seed: int) -> nn.Module:
    """A trained network of one hidden layer."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(x.shape[1], width), nn.Tanh(), nn.Linear(width, 10))
    random = generator(seed, 1)

    def loss() -> Tensor:
        rows = torch.randint(len(x), (BATCH,), generator=random)
        return F.cross_entropy(model(x[rows]), y[rows])

    train(model, loss, steps, RATE)
    return model


def foretell(columns: dict[str, Any]) -> dict[str, Any]:
    """What two-digit numbers of small networks say of five-digit ones, and the losses of one that is left out."""
    sizes, easy, hard = columns["parameters"], columns["exact 2"], columns["exact 5"]
    chance = 0.1
    try:
        curve = fit_steps(sizes[:SMALL], easy[:SMALL], 2)
        told = [composite(curve(n), 5) for n in sizes]
        held = len(sizes) // 2
        others = [i for i in range(len(sizes)) if i != held]
        task = fit_task([columns["loss"][i] for i in others], [columns["exact 1"][i] for i in others], chance)
        from_loss = abs(task(columns["loss"][held]) - columns["exact 1"][held])
        threshold = curve.threshold(0.5, 5)
    except Mistake:
        told, from_loss, threshold = [0.0] * len(sizes), 1.0, 0.0
    missed = [abs(a - b) for a, b in zip(told[SMALL:], hard[SMALL:], strict=True)]
    return {"foretold": told, "missed": sum(missed) / len(missed), "from_loss": from_loss, "threshold": threshold}


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    one, five = numbers["exact 1"], numbers["exact 5"]
    before = [p for p, q in zip(one, five, strict=True) if q < 0.05]
    return {
        "whole numbers against p^5": max(abs(q - composite(p, 5)) for p, q in zip(one, five, strict=True)),
        "digit read before numbers are": max(before, default=0.0),
        "error of the foretold accuracy": numbers["missed"],
        "error from the loss": numbers["from_loss"],
    }


def needs(numbers: dict[str, Any]) -> float:
    return 0.0 if numbers["steps"] >= LEAST else LEAST / PRICE


def figure(numbers: dict[str, Any]) -> Figure:
    """Exact match and log-probability over the size, and what was foretold."""
    n = numbers["parameters"]
    exact = [Curve(f"{k} digits", n, numbers[f"exact {k}"]) for k in LENGTHS]
    log = [Curve(f"{k} digits", n, numbers[f"log {k}"]) for k in LENGTHS]
    told = [Curve("measured", n, numbers["exact 5"]), Curve("foretold by two digits", n, numbers["foretold"])]
    return draw_panels(
        [
            Panel("exact match", "parameters", "share right", exact, "linear"),
            Panel("log-probability", "parameters", "nats", log, "linear"),
            Panel("five digits", "parameters", "share right", told, "linear"),
        ]
    )
