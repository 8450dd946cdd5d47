"""Built-in symmetry saves examples: a model that cannot but be invariant against one that may be anything.

    sets           5 numbers, y = Σ sin(2 x_i) + noise        Σ-network  ρ(Σ φ(x_i))  against a network on all 5 inputs
    translations   3 patterns at any of 16 places of a ring   circular convolution, mean over places, against the same

Both models of a task have about as many parameters and the same training. Examples needed: the fewest of a ladder of
sizes whose mean test error is at the target; twice the largest where none is.

Systems: symmetry-and-sample-efficiency
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from descend.labs._evidence import AtLeast, AtMost
from descend.labs._panels import COLOURS, finish, make_panels
from descend.labs._side_by_side import fit_copies
from descend.labs._trials import buy_trials

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("S940-DLD.175",)
PRINTED = "Architectural symmetry restricts the hypothesis space and so helps to generalize (idea 1, no number)."
CLAIM = (
    "On sums over sets and on shifted patterns an invariant model reaches the target error with at most half of the"
    " examples that an unconstrained model of the same size needs."
)
PREDICTIONS = (
    AtLeast("sets", 2.0, "Examples that the unconstrained model needs over those of the invariant one, on sets."),
    AtLeast("translations", 2.0, "The same on translations."),
    AtMost("not_invariant", 1e-4, "How far an invariant model's answer moves when its input is permuted or shifted."),
    AtLeast("unconstrained_moves", 1e-2, "How far an unconstrained one's does, after training."),
)
SCOPE = "Two toy tasks whose symmetry is exact. Where a symmetry is only approximate, building it in may cost."
BUDGET = 10.0
PRICE, LEAST = 0.1, 1  # rounds of both tasks that a second of one core buys
LADDER, TARGETS, TESTS = (8, 16, 32, 64, 128, 256, 512), {"sets": 0.1, "translations": 0.25}, 500
SET, RING, PATTERN, NOISE, STEPS, RATE = 5, 16, 5, 0.3, 600, 0.01


class Summed(nn.Module):
    """ρ(Σ φ(x_i)) for x (n, 5)."""

    def __init__(self) -> None:
        super().__init__()
        self.each = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 8))
        self.all = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.all(self.each(x[..., None]).sum(-2))[..., 0]
        return y


class Free(nn.Module):
    """Any function of the whole input."""

    def __init__(self, inputs: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, outputs))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.net(x)
        return y[..., 0] if y.shape[-1] == 1 else y


class Shifted(nn.Module):
    """A circular convolution, ReLU, and the mean over all places, for x (n, 16)."""

    def __init__(self) -> None:
        super().__init__()
        self.window = nn.Conv1d(1, 24, PATTERN, padding=PATTERN // 2, padding_mode="circular")
        self.out = nn.Linear(24, 3)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.out(self.window(x[:, None]).relu().mean(-1))
        return y


def draw_sets(n: int, random: torch.Generator, patterns: Tensor) -> tuple[Tensor, Tensor]:
    x = 2 * torch.rand(n, SET, generator=random) - 1
    return x, (2 * x).sin().sum(-1) + 0.1 * torch.randn(n, generator=random)


def draw_shifted(n: int, random: torch.Generator, patterns: Tensor) -> tuple[Tensor, Tensor]:
    y, place = torch.randint(3, (n,), generator=random), torch.randint(RING, (n, 1), generator=random)
    x = torch.zeros(n, RING).scatter_(1, (place + torch.arange(PATTERN)) % RING, patterns[y])
    return x + NOISE * torch.randn(n, RING, generator=random), y


def squares(found: Tensor, y: Tensor) -> Tensor:
    return (found - y).square().mean()


def wrong(found: Tensor, y: Tensor) -> Tensor:
    return (found.argmax(-1) != y).float().mean()


TASKS = (
    ("sets", draw_sets, squares, squares, lambda x: x.flip(-1), (Summed, lambda: Free(SET, 48, 1))),
    ("translations", draw_shifted, cross_entropy, wrong, lambda x: x.roll(5, -1), (Shifted, lambda: Free(RING, 11, 3))),
)
"""Name, data, training loss, test error, what leaves the answer as it is, and the two models."""


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Mean test errors of four models for every number of examples, and how far their answers move."""
    rounds, random = buy_trials(budget, PRICE, LEAST), torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    found: dict[str, Any] = {"examples": list(LADDER), "rounds": rounds}
    for task, draw, loss, error, move, builders in TASKS:
        columns = torch.zeros(2, len(LADDER))
        for _ in range(rounds):
            patterns = torch.randn(3, PATTERN, generator=random)
            new, truth = draw(TESTS, random, patterns)
            for j, n in enumerate(LADDER):
                x, y = draw(n, random, patterns)
                models = [build() for build in builders]
                for i, model in enumerate(models):
                    columns[i, j] += train(model, x, y, loss, error, new, truth) / rounds
        with torch.no_grad():
            moved = [float((model(new) - model(move(new))).abs().max()) for model in models]
        for i, kind in enumerate(("invariant", "unconstrained")):
            found[f"{task}_{kind}"], found[f"{task}_{kind}_moves"] = columns[i].tolist(), moved[i]
            found[f"{task}_{kind}_parameters"] = sum(p.numel() for p in models[i].parameters())
    return found


Score = Callable[[Tensor, Tensor], Tensor]


def train(model: nn.Module, x: Tensor, y: Tensor, loss: Score, error: Score, new: Tensor, truth: Tensor) -> float:
    """The test error after training on (x, y)."""
    fit_copies(model, lambda: loss(model(x), y), STEPS, RATE)
    with torch.no_grad():
        return float(error(model(new), truth))


def count_needed(numbers: dict[str, Any], task: str, kind: str) -> int:
    """The fewest examples with which the error is at the target."""
    for n, error in zip(numbers["examples"], numbers[f"{task}_{kind}"], strict=True):
        if error <= TARGETS[task]:
            return int(n)
    return 2 * int(numbers["examples"][-1])


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    tasks = tuple(TARGETS)
    ratios = {
        task: count_needed(numbers, task, "unconstrained") / count_needed(numbers, task, "invariant") for task in tasks
    }
    return {
        **ratios,
        "not_invariant": max(numbers[f"{task}_invariant_moves"] for task in tasks),
        "unconstrained_moves": min(numbers[f"{task}_unconstrained_moves"] for task in tasks),
    }


def figure(numbers: dict[str, Any]) -> Figure:
    """The test error against the examples, for both tasks."""
    fig, panels = make_panels(2)
    for axes, (task, target) in zip(panels, TARGETS.items(), strict=True):
        for kind, colour in (("invariant", COLOURS[0]), ("unconstrained", COLOURS[1])):
            axes.loglog(numbers["examples"], numbers[f"{task}_{kind}"], "o-", ms=4, color=colour, label=kind)
        axes.axhline(target, color="0.6", ls=":", label="target")
        finish(axes, f"test error, {task}", "examples")
    return fig
