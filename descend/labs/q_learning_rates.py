"""Does Q-learning come to Q*? The same random walks over slippery ice, with a rate that falls and one that does not.

    α_k = 0.1 (1 + (k − 1)/300)^−1      Σ α = ∞, Σ α² < ∞: the conditions of Robbins and Monro
    α_k = 0.1                           Σ α² = ∞: every new reward still moves the table

Behaviour is random throughout and episodes begin anywhere, so that nobody follows the policy that is learned. Q* of the
table of FrozenLake-v1 (γ = 0.99) is known by policy iteration. The greedy policy of the table is judged by its exact
value from the start, beside the value of the random one that made the steps.

Systems: q-learning
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor

from descend.classic.dynamic_programming import evaluate_policy, iterate_policies
from descend.classic.q_learning import learn
from descend.data.control.tables import read_env
from descend.labs._evidence import AtLeast, AtMost, Below
from descend.ops.decisions.bellman import as_policy, greedy, reachable, uniform_policy
from descend.ops.decisions.rates import StepSize

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("S940-DLD.121",)
PRINTED = "Q-learning is off-policy; it converges under conditions on the rate (Robbins and Monro; not printed)."
CLAIM = (
    "Q-learning from random behaviour comes within 0.02 of Q* in every state and action where its rate falls as"
    " 1/visits, and its greedy policy earns the optimal value within 1%, though the behaviour earns next to nothing;"
    " with a constant rate the error stays at least three times as large."
)
PREDICTIONS = (
    AtMost("error, falling rate", 0.02, "The largest distance from Q*."),
    AtLeast("earned", 0.99, "The exact value of its greedy policy as a share of the optimal."),
    AtLeast(
        "error, constant rate",
        3,
        "The error with a constant rate over that with the falling one.",
    ),
    Below(
        "behaviour earns",
        0.1,
        "The value of the behaviour as a share of the optimal: it learns from bad play.",
    ),
)
SCOPE = "FrozenLake of 4 × 4, slippery, random behaviour; no function approximation."
RATES = {"falling": StepSize(first=0.1, hold=300, power=1.0), "constant": StepSize(first=0.1, power=0.0)}
COPIES, LIMIT, GAMMA = 1024, 100, 0.99
MARKS = 40  # points of a curve
BUDGET = 10.0
PRICE = 600  # steps of all walks, once for each rate, that a second of one core buys
NEEDED = 4000  # steps for a verdict


def measure(seed: int, budget: float) -> dict[str, Any]:
    """The largest error of Q while it is learned, and what its greedy policy earns."""
    steps = max(MARKS, round(PRICE * budget))
    process, _ = read_env("FrozenLake-v1", GAMMA)
    best, seen = iterate_policies(process), reachable(process)
    curves: dict[str, list[float]] = {name: [] for name in RATES}
    earned: dict[str, float] = {}
    every = steps // MARKS
    for name, rate in RATES.items():

        def watch(step: int, q: Tensor, curve: list[float] = curves[name]) -> None:
            if step % every == 0:
                curve.append(float((q - best.q)[seen].abs().max()))

        found = learn(process.begun_in(seen), steps, lambda n: 1.0, rate, COPIES, LIMIT, seed, watch)
        policy = as_policy(greedy(process, found.q), process.actions)
        earned[name] = float(process.start @ evaluate_policy(process, policy))
    return {
        "steps": steps,
        "every": every * COPIES,
        "curves": curves,
        "error": {name: curve[-1] for name, curve in curves.items()},
        "earned": earned,
        "optimal": float(process.start @ best.v),
        "behaviour": float(process.start @ evaluate_policy(process, uniform_policy(process))),
    }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    error, best = numbers["error"], numbers["optimal"]
    return {
        "error, falling rate": error["falling"],
        "earned": numbers["earned"]["falling"] / best,
        "error, constant rate": error["constant"] / error["falling"],
        "behaviour earns": numbers["behaviour"] / best,
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < NEEDED else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """The error of the table against the steps, one line a rate."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(8, 4.5), layout="constrained")
    axes = fig.subplots()
    for (name, curve), color in zip(numbers["curves"].items(), ("#2b6cd8", "#d66820"), strict=True):
        x = [numbers["every"] * (i + 1) for i in range(len(curve))]
        axes.plot(x, curve, color=color, lw=1.8, label=f"{name} rate")
    axes.axhline(0.02, color="0.6", ls=":", lw=1.2)
    axes.set_yscale("log")
    axes.set_xlabel("environment steps")
    axes.set_title("largest error of Q(s, a)", fontsize=11, loc="left", fontweight="bold")
    axes.legend(frameon=False)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
