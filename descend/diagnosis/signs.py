"""What is measured of a run (signs), and what is said about it (a finding).

A sign that could not be measured is None or empty; a check that needs it then says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

LEARNED = 0.5  # a loss that has halved has learned something: what it overcame is not reported
KNOWS = 0.9  # a loss near that of a constant answer has learned only the frequencies
LAST = 5  # the end of a curve is its last fifth

Curve = tuple[tuple[int, float], ...]
"""(step, loss) pairs, in order."""


@dataclass(frozen=True)
class Finding:
    """What is wrong, the numbers that show it, the equation behind it, and the change to make."""

    name: str
    severity: str
    """fault: the model does not learn, or its figures cannot be trusted; warning: it could be better."""
    evidence: str
    equation: str
    change: str


@dataclass(frozen=True)
class LayerSigns:
    """A module with a weight matrix, in the order of the forward pass."""

    name: str
    signal: float
    """‖∂L/∂z‖ of its output z, over a batch; NaN where no gradient arrives by this way."""
    gradient: float
    """‖∂L/∂W‖"""
    weight: float
    """‖W‖"""
    move: float
    """‖ΔW‖ / ‖W‖ of one step at the run's highest learning rate."""


@dataclass(frozen=True)
class Units:
    """The outputs of a nonlinearity after a layer."""

    name: str
    kind: str
    """relu, sigmoid or tanh"""
    count: int
    dead: float
    """Share of units that are 0 for every example."""
    saturated: float
    """Share of outputs beyond 0.97 of the way to an end."""


@dataclass(frozen=True)
class Answers:
    """What the model says of the validation examples."""

    top: float
    """Share of the most frequent answer."""
    label: str
    true_top: float
    """Share of the most frequent true class."""
    count: int


@dataclass(frozen=True)
class Better:
    """A simple method that knows the same training examples, and the model, by the same validation score."""

    method: str
    score: str
    theirs: float
    ours: float


@dataclass(frozen=True)
class Signs:
    """All that the checks look at."""

    name: str = ""
    """The recipe's."""
    values: dict[str, Any] = field(default_factory=dict)
    """The recipe's values by their flags: {"optim.lr": 0.1, ..}."""
    steps: int = 0
    """Steps that were asked for."""
    train: Curve = ()
    valid: Curve = ()
    norms: Curve = ()
    """Gradient norms, where the run clips."""
    players: dict[str, Curve] = field(default_factory=dict)
    """The loss of each player, where there are several."""
    measured: dict[str, Curve] = field(default_factory=dict)
    """What the task measured while training, by name."""
    judged: dict[str, Curve] = field(default_factory=dict)
    """Validation scores, by name."""
    spikes: tuple[tuple[int, str], ...] = ()
    """Step of each spike that was logged, and what was said of it."""
    done: int = 0
    """Steps that were taken."""
    ended: str = ""
    """The event that the log ends with: finished, patience, budget, failed, SIGINT; empty where it breaks off."""
    running: bool = False
    """Whether a process is training in the folder."""
    fault: str = ""
    """What stopped the run."""
    fault_step: int = 0
    layers: tuple[LayerSigns, ...] = ()
    units: tuple[Units, ...] = ()
    spoilt: tuple[int, ...] = ()
    """Ids of training examples that hold NaN or infinity."""
    chance: float | None = None
    """Loss of the best answer that does not look at x."""
    fitted: float | None = None
    """Loss on training examples with the last weights, as in evaluation."""
    doubled: float | None = None
    """Share of the validation examples that are training examples too."""
    repeated: float = 0.0
    """Share of the training examples that occur twice among themselves."""
    columns: tuple[tuple[str, float], ...] = ()
    """Input columns of a table that determine the target alone, with the share of it that they explain."""
    answers: Answers | None = None
    better: Better | None = None

    @property
    def end(self) -> float:
        """Mean of the last fifth of the training losses."""
        last = self.train[-max(1, len(self.train) // LAST) :]
        return sum(loss for _, loss in last) / max(1, len(last))

    @property
    def unfinished(self) -> bool:
        """Whether the run stopped before its steps were done, and can be resumed."""
        return self.done < self.steps and self.ended not in ("finished", "patience", "failed") and not self.running

    @property
    def learned(self) -> bool:
        """Whether the loss has fallen to half, and below that of a constant answer."""
        if not self.train:
            return False
        return self.end < LEARNED * self.train[0][1] and (self.chance is None or self.end < KNOWS * self.chance)

    @property
    def ill(self) -> bool:
        """Whether the run has a loss that ought to fall and did not, or failed. (A game or a reward has none.)"""
        return bool(self.train or self.fault) and not self.learned

    def value(self, flag: str) -> float | None:
        """A number of the recipe."""
        found = self.values.get(flag)
        return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else None

    def lower(self, flag: str, factor: float) -> str:
        """The flag with its value times a factor."""
        found = self.value(flag)
        return f"--{flag.replace('_', '-')} " + (f"{found * factor:.2g}" if found else "(another value)")


def flatten(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """The values of recipe.json by their flags: the loop's have no prefix."""
    found: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            found |= flatten(value, "" if key == "loop" and not prefix else f"{prefix}{key}.")
        elif key != "class":
            found[f"{prefix}{key}"] = value
    return found
