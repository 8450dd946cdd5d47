"""Transfer learning: what was learned from many images of other classes helps where labels are few.

    pre-train      on 24 pairs of colour and shape, many scenes of each
    then           on the 24 other pairs, with 1, 2, 5 or 10 labelled scenes of each:
      scratch      a new network, all of it trained
      probe        φ frozen, a new head fitted to features computed once
      tuned        the probe's network trained on, at a tenth of the learning rate

The books say that pre-training helps with little data (DLN: ImageNet → CIFAR-10; S940: VGG features) and print no
figures. A measured limit: the source must be at least as rich as the target. A LeNet pre-trained on the embedded digits
0 to 4 makes a probe that reads digits 5 to 9 at 69 to 77% from 10 examples of each; from scratch it is 94 to 97%.

Systems: transfer-learning
"""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from descend.classic.head import fit_head
from descend.data.images.few_images import board
from descend.data.toys.scenes import COLOURS, SHAPES, one_object
from descend.interpret.representations import representations
from descend.labs._evidence import Above
from descend.labs._train import train
from descend.models.resnet_cifar import ResNetCifar, ResNetCifarConfig

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-A.196", "S940-DLD.47")
PRINTED = (
    "Pre-train on a large general dataset, fine-tune on a small one: frozen features with a new"
    " head, then unfreeze (no figures)."
)
CLAIM = (
    "With few labels a network pre-trained on other classes beats one trained from scratch: its frozen features with a"
    " new head already do, and the fewer the labels, the larger the gain."
)
PREDICTIONS = (
    Above(
        "wins by",
        3,
        "The least lead over scratch with up to 5 labels, probe and tuned, in standard errors.",
    ),
    Above(
        "gain falls",
        1,
        "Ratio of tuned to scratch with the fewest labels over that with the most.",
    ),
)
SCOPE = (
    "Scenes of 24×24, 24 classes each; the source has to be at least as rich as the target (a LeNet"
    " of digits 0-4 does not help with 5-9)."
)
LABELS = (1, 2, 5, 10)
WAYS = ("scratch", "probe", "tuned")
SIDE, CLASSES, TESTED = 24, 24, 600
BUDGET = 35.0
PRICE = 6  # steps of pre-training that a second of one core buys, the rest included
ENOUGH = 200  # steps of pre-training below which nothing is said
LR = 5e-3


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Test accuracy of the three ways against the number of labels of each class."""
    torch.manual_seed(seed)
    steps = max(5, round(PRICE * budget))
    tested = min(TESTED, 3 * steps)
    random = torch.Generator().manual_seed(seed)
    x, y = draw_labelled(min(4000, 16 * steps), "first", random)
    model = new()
    train(model, lambda: loss_of(model, x, y, torch.randint(len(y), (64,), generator=random)), steps, LR)
    source = accuracy(model, *draw_labelled(tested, "first", random))
    pool, classes = draw_labelled(min(60 * CLASSES, 8 * steps), "second", random)
    test = draw_labelled(tested, "second", random)
    found: dict[str, Any] = {way: [] for way in WAYS}
    for each in LABELS:
        rows = torch.cat([(classes == k).nonzero().flatten()[:each] for k in range(CLASSES)])
        for way, value in three_ways(model, pool[rows], classes[rows], test, max(5, min(60, steps // 4))).items():
            found[way].append(value)
    return {"labels": list(LABELS), **found, "steps": steps, "source": source, "chance": 1 / CLASSES, "tested": tested}


def three_ways(model: nn.Module, x: Tensor, y: Tensor, test: tuple[Tensor, Tensor], steps: int) -> dict[str, float]:
    """Accuracies on the test scenes after learning from x, y."""
    scratch, tuned = new(), copy.deepcopy(model)
    random = torch.Generator().manual_seed(len(y))
    some = lambda: torch.randint(len(y), (64,), generator=random)
    train(scratch, lambda: loss_of(scratch, x, y, some()), steps, LR)
    tuned.head = fit_head(representations(tuned, x), y, CLASSES)
    probe = accuracy(tuned, *test)
    train(tuned, lambda: loss_of(tuned, x, y, some()), steps, LR / 10)
    return {"scratch": accuracy(scratch, *test), "probe": probe, "tuned": accuracy(tuned, *test)}


def new() -> ResNetCifar:
    return ResNetCifar(ResNetCifarConfig((3, SIDE, SIDE), CLASSES, layers=8)).train()


def draw_labelled(n: int, half: str, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Standardized scenes (n, 3, side, side), and which pair of the half each one shows (n)."""
    pairs = board(half)
    number = torch.full((len(SHAPES), len(COLOURS)), -1)
    for k, (shape, colour) in enumerate(pairs):
        number[SHAPES.index(shape), COLOURS.index(colour)] = k
    seen = one_object(n, SIDE, random, pairs)
    return (seen.x - 0.5) / 0.25, number[seen.shape[:, 0], seen.colour[:, 0]]


def loss_of(model: nn.Module, x: Tensor, y: Tensor, rows: Tensor) -> Tensor:
    return F.cross_entropy(model(x[rows]), y[rows])


@torch.no_grad()
def accuracy(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """Share of right answers, in evaluation mode; the model is left in training mode."""
    model.eval()
    right = float((model(x).argmax(dim=1) == y).double().mean())
    model.train()
    return right


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    n, scratch = numbers["tested"], numbers["scratch"]
    few = [i for i, each in enumerate(numbers["labels"]) if each <= 5]
    leads = [(numbers[way][i], scratch[i]) for i in few for way in ("probe", "tuned")]
    ratio = [p / max(s, 1e-9) for p, s in zip(numbers["tuned"], scratch, strict=True)]
    return {
        "wins by": min((p - s) / max(error(p, s, n), 1e-9) for p, s in leads),
        "gain falls": ratio[0] / ratio[-1],
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < ENOUGH else 0.0


def error(p: float, q: float, n: int) -> float:
    """Standard error of the difference of two shares, each of n."""
    return math.sqrt((p * (1 - p) + q * (1 - q)) / n)


def figure(numbers: dict[str, Any]) -> Figure:
    """Accuracy against labels, one line a way."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6.5, 4), layout="constrained")
    axes = fig.subplots()
    for way, color in zip(WAYS, ("0.6", "#d66820", "#2b6cd8"), strict=True):
        axes.plot(numbers["labels"], numbers[way], "o-", color=color, label=way)
    axes.axhline(numbers["chance"], color="0.8", ls=":", label="chance")
    axes.set_xscale("log")
    axes.set_xticks(numbers["labels"], [str(n) for n in numbers["labels"]])
    axes.set_xlabel("labelled images of each class")
    axes.set_title("accuracy on new classes", fontsize=11, loc="left", fontweight="bold")
    axes.legend(frameon=False)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
