"""Does a molecule have two rings or more? The answer is in how its atoms are linked, not in which atoms there are.

    label      E − V + components ≥ 2, of generated molecules (`data/toys/molecules.py`), in two parts now and then
    network    a graph isomorphism network that sees elements, and which atoms are linked
    baseline   a small network on the mean of the elements over the molecule: what is left without the links

1000 molecules teach, 500 others are asked; both networks take as many steps. Sizes and steps were looked at on seeds 10
and 11.

Systems: graph-task-labs
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.data.graphs.attributed import gather
from descend.data.graphs.embedded import as_graph
from descend.data.streams.batches import take_examples
from descend.data.toys.molecules import ELEMENTS, grow_molecules
from descend.labs._evidence import AtLeast
from descend.labs._train import train
from descend.losses.classification import cross_entropy
from descend.models.gin import GINConfig, GINForGraphs
from descend.models.mlp import MLP, MLPConfig
from descend.ops.graph.aggregate import mean_groups
from descend.ops.graph.batches import read_graph
from descend.ops.graph.paths import cycle_rank
from descend.seeds import generator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-C.8",)
PRINTED = "Does a molecule graph contain at least two rings (E − V + components ≥ 2)?"
CLAIM = (
    "A graph isomorphism network tells molecules with two rings or more from others, right in 95% of new ones; a"
    " network on mean features is worse by 30%."
)
PREDICTIONS = (
    AtLeast("accuracy", 0.95, "On new molecules."),
    AtLeast(
        "lead over means",
        0.3,
        "Accuracy less that of a network on mean features, which sees no links.",
    ),
)
SCOPE = "1,000 generated molecules teach, 500 are asked; sizes were looked at on seeds 10 and 11."
TAUGHT, NEW, BATCH, RATE = 1000, 500, 50, 5e-3
CONFIG = GINConfig(inputs=len(ELEMENTS), width=32, outputs=2, depth=4, dropout=0.0)
BASELINE = MLPConfig(len(ELEMENTS), (64,), 2)
BUDGET = 6.0
PRICE = 100  # steps of both networks that a second of one core buys
LEAST = 200


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Accuracy of both networks on new molecules, by rings for the first."""
    steps = max(5, round(PRICE * budget))
    whole = gather([as_graph(molecule) for molecule in grow_molecules(TAUGHT + NEW, seed)]).arrays
    rows = [*torch.arange(TAUGHT).split(BATCH), torch.arange(TAUGHT, TAUGHT + NEW)]
    graphs = [read_graph(take_examples(whole, part)) for part in rows]
    rings = [cycle_rank(graph.links) for graph in graphs]
    means = [mean_groups(graph.nodes, graph.links.owner, graph.links.graphs) for graph in graphs]
    models = ((GINForGraphs, CONFIG, graphs), (MLP, BASELINE, means))
    right: list[Tensor] = []
    for build, config, inputs in models:
        torch.manual_seed(seed)
        model, random = build(config), generator(seed, 1)  # type: ignore[arg-type]

        def loss(model: Any = model, inputs: Any = inputs, random: torch.Generator = random) -> Tensor:
            i = int(torch.randint(len(rows) - 1, (), generator=random))
            return cross_entropy(model(inputs[i]), (rings[i] >= 2).long()).mean()

        train(model, loss, steps, RATE)
        with torch.no_grad():
            right.append((model.eval()(inputs[-1]).argmax(dim=1) == (rings[-1] >= 2)).double())
    return {
        "accuracy": float(right[0].mean()),
        "baseline": float(right[1].mean()),
        "majority": max(float((rings[-1] >= 2).double().mean()), float((rings[-1] < 2).double().mean())),
        "rings": [0, 1, 2, 3],
        "by_rings": [float(right[0][rings[-1] == k].mean()) for k in range(4)],
        "baseline_by_rings": [float(right[1][rings[-1] == k].mean()) for k in range(4)],
        "steps": steps,
    }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    return {"accuracy": numbers["accuracy"], "lead over means": numbers["accuracy"] - numbers["baseline"]}


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Accuracy of both, by the number of rings."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6, 3.4), layout="constrained")
    axes = fig.subplots()
    at = numbers["rings"]
    axes.bar([i - 0.2 for i in at], numbers["by_rings"], 0.38, label="graph isomorphism network", color="#2b6cd8")
    axes.bar([i + 0.2 for i in at], numbers["baseline_by_rings"], 0.38, label="mean features", color="#b9c4d6")
    axes.set_xticks(at)
    axes.set_xlabel("rings")
    axes.set_title("accuracy: two rings or more?", fontsize=11, loc="left", fontweight="bold")
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)
    return fig
