"""A property of molecules, regressed: how far below the error of always saying the mean?

    property     Σ_atoms a(element) + Σ_bonds b(order) − 1.5 R, of generated molecules, R rings; without noise
    network      a graph isomorphism network; an atom is its element and the orders of its bonds added up
    mean         the mean property of the molecules that teach
    linear       least squares on the sums over a molecule of what the network sees of its atoms, and their number

The error is the mean square on 500 molecules that were not among the 1000 that teach, as a share of their mean square
about that mean (1 is the mean predictor). The rings are what the linear model cannot see. The
rate was chosen among two on seed 10.

Systems: graph-task-labs
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.data.graphs.attributed import gather
from descend.data.graphs.embedded import as_graph
from descend.data.streams.batches import take_examples
from descend.data.toys.molecules import ELEMENTS, grow_molecules, measure_property
from descend.labs._evidence import AtMost, Below
from descend.labs._train import train
from descend.losses.regression import squared_error
from descend.models.gin import GINConfig, GINForGraphs
from descend.ops.graph.aggregate import sum_groups
from descend.ops.graph.batches import read_graph
from descend.ops.graph.structure import Graph
from descend.seeds import generator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("S940-DLD.137",)
PRINTED = "Quantum-chemical properties of small molecules are predicted by graph networks (no number)."
CLAIM = (
    "A graph network predicts a property of new molecules with at most a tenth of the mean predictor's squared error,"
    " and less than a linear model of its atoms."
)
PREDICTIONS = (
    AtMost("error", 0.1, "Mean squared error on new molecules as a share of the mean predictor's."),
    Below(
        "error over linear",
        1,
        "The same over the error of a linear model of the atoms; at 1 the links would tell nothing.",
    ),
)
SCOPE = "1,000 generated molecules and an additive property with rings; the rate was chosen on seed 10."
TAUGHT, NEW, BATCH, RATE = 1000, 500, 50, 1e-2
CONFIG = GINConfig(inputs=len(ELEMENTS) + 1, width=32, outputs=1, depth=4, dropout=0.0)
BUDGET = 10.0
PRICE = 150  # steps that a second of one core buys
LEAST = 300


def describe_atoms(graph: Graph) -> Graph:
    """Each atom by its element and the orders of its bonds added up."""
    orders = graph.edges @ torch.tensor([[1.0], [2.0]])
    bonds = sum_groups(orders, graph.links.target, graph.links.n)
    return graph.update(torch.cat([graph.nodes, bonds], dim=1))


def fit_linear(x: Tensor, y: Tensor, new: Tensor) -> Tensor:
    """Least squares with a constant, at new rows."""
    rows, asked = (torch.cat([part, part.new_ones(len(part), 1)], dim=1).double() for part in (x, new))
    return asked @ torch.linalg.lstsq(rows, y.double()[:, None], driver="gelsd").solution[:, 0]


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Shares of the mean predictor's error, and predictions of some molecules."""
    steps = max(5, round(PRICE * budget))
    molecules = grow_molecules(TAUGHT + NEW, seed)
    whole, y = gather([as_graph(m) for m in molecules]).arrays, torch.tensor([measure_property(m) for m in molecules])
    rows = [*torch.arange(TAUGHT).split(BATCH), torch.arange(TAUGHT, TAUGHT + NEW)]
    graphs = [describe_atoms(read_graph(take_examples(whole, part))) for part in rows]
    mean, std = y[:TAUGHT].mean(), y[:TAUGHT].std()
    targets = [(y[part] - mean) / std for part in rows]
    torch.manual_seed(seed)
    model, random = GINForGraphs(CONFIG), generator(seed, 1)

    def loss() -> Tensor:
        i = int(torch.randint(len(rows) - 1, (), generator=random))
        return squared_error(model(graphs[i])[:, 0], targets[i]).mean()

    train(model, loss, steps, RATE)
    with torch.no_grad():
        found = model.eval()(graphs[-1])[:, 0]
    sums = [sum_groups(graph.nodes, graph.links.owner, graph.links.graphs) for graph in graphs]
    linear = fit_linear(torch.cat(sums[:-1]), torch.cat(targets[:-1]), sums[-1])
    variance = targets[-1].square().mean()
    return {
        "error": float((found - targets[-1]).square().mean() / variance),
        "linear": float((linear - targets[-1]).square().mean() / variance),
        "true": (targets[-1] * std + mean).tolist(),
        "predicted": (found * std + mean).tolist(),
        "steps": steps,
    }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    return {"error": numbers["error"], "error over linear": numbers["error"] / numbers["linear"]}


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Predicted against true."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(4.6, 4.2), layout="constrained")
    axes = fig.subplots()
    ends = [min(numbers["true"]), max(numbers["true"])]
    axes.plot(ends, ends, color="0.6", lw=1)
    axes.plot(numbers["true"], numbers["predicted"], ".", ms=4, alpha=0.6)
    axes.set_xlabel("property")
    axes.set_ylabel("predicted")
    title = f"{numbers['error']:.1%} of the mean predictor's error"
    axes.set_title(title, fontsize=11, loc="left", fontweight="bold")
    axes.spines[["top", "right"]].set_visible(False)
    return fig
