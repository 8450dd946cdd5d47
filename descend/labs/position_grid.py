"""Learned positions of a ViT become a map of the image, though nothing tells the model that its sequence is a grid.

    cos(E_i, E_j)      of the learned positions of patches i and j
    near               mean over neighbours in the grid − mean over all other pairs
    lines              mean over pairs in one row or one column − mean over all other pairs

A small ViT learns the embedded digits, 4 × 4 patches, moved by up to one pixel each time; its positions start as noise
of 0.02. How large such a difference is by chance is known: the same figure with the 16 places shuffled, 2,000 times. A
figure is real if at most 1 in 100 shuffles reaches it. MF 37.5 and the ViT paper show the map as an image.

Images that move are part of the claim: on digits that are all centred, tried on seeds 0, 1 and 2, each place has its
own meaning and neighbours became less alike than other pairs (−0.18, −0.18, −0.05). With a third of these steps the
moving digits were not yet learned (0.67 and 0.71 right), the neighbours already alike (0.43 and 0.48).

Systems: class-token
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from descend.data.images.digits import load_digits_split
from descend.labs._evidence import AtLeast, AtMost
from descend.labs._train import train
from descend.losses.classification import cross_entropy
from descend.models.vit import ViTConfig, ViTForImageClassification
from descend.nn.attention.positions_2d import similarity
from descend.weights.labels import Labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("MF-B.109",)
PRINTED = "Learned positions of a ViT show 2D structure (shown as an image)."
CLAIM = (
    "On images that move, trained positions of a vision transformer show the image: those of neighbouring patches are"
    " alike, and those of patches in one row or column more than others."
)
PREDICTIONS = (
    AtMost(
        "reached by chance",
        0.01,
        "The share of shuffles of the places that reach either figure, the larger; refuted from 1 in 10 on.",
        refuted=0.1,
    ),
)
CONTROLS = (AtLeast("digits right", 0.8, "Accuracy on held-out digits: below it too little was learned."),)
SCOPE = "4 × 4 patches of 8×8 digits that move by a pixel, a small ViT."
RETUNED = (
    "On digits that are all centred, tried on seeds 0, 1 and 2, neighbours became less alike than"
    " other pairs (−0.18, −0.18, −0.05): that images move is now part of the claim."
)
SIDE, PATCH, WIDTH, BATCH, RATE, SHUFFLES = 8, 2, 32, 48, 3e-3, 2000
ROWS = SIDE // PATCH
BUDGET = 18.0
PRICE = 120  # steps that a second of one core buys
LEAST = 300  # steps below which nothing is said


def train_vit(steps: int, seed: int) -> tuple[ViTForImageClassification, float]:
    """A trained model, and its accuracy on held-out digits."""
    torch.manual_seed(seed)
    config = ViTConfig(1, SIDE, PATCH, WIDTH, 2, 4, 2 * WIDTH, labels=Labels(tuple("0123456789")))
    model = ViTForImageClassification(config)
    for layer in model.modules():  # N(0, 0.02²) is for wide ones
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=layer.in_features**-0.5)
    nn.init.normal_(model.embed.positions, std=0.02)
    digits, random = load_digits_split(), torch.Generator().manual_seed(seed)
    x, y = digits.train.x, digits.train.y

    def loss() -> Tensor:
        rows = torch.randint(len(y), (BATCH,), generator=random)
        across, down = (int(torch.randint(-1, 2, (1,), generator=random)) for _ in range(2))
        return cross_entropy(model(scale(x[rows].roll((down, across), (2, 3)))), y[rows]).mean()

    train(model, loss, steps, RATE)
    with torch.no_grad():
        right = (model.eval()(scale(digits.valid.x)).argmax(-1) == digits.valid.y).double().mean()
    return model, float(right)


def scale(x: Tensor) -> Tensor:
    """Mean 0 and variance 1, about."""
    return (x - 0.305) / 0.376


def pairs() -> dict[str, Tensor]:
    """Which pairs of places (n, n) are neighbours, and which are in one row or column; no place with itself."""
    at = torch.cartesian_prod(torch.arange(ROWS), torch.arange(ROWS))
    apart = (at[:, None] - at).abs()
    other = ~torch.eye(len(at), dtype=torch.bool)
    return {"near": apart.sum(-1) == 1, "lines": (apart == 0).any(-1) & other}


def difference(cos: Tensor, chosen: Tensor) -> float:
    """Mean of the chosen pairs minus the mean of the others, without the diagonal."""
    other = ~chosen & ~torch.eye(len(cos), dtype=torch.bool)
    return float(cos[chosen].mean() - cos[other].mean())


def share_of_shuffles(cos: Tensor, chosen: Tensor, random: torch.Generator) -> float:
    """How many shuffles of the places reach the difference that was found: 0 … 1."""
    found, reached = difference(cos, chosen), 0
    for _ in range(SHUFFLES):
        order = torch.randperm(len(cos), generator=random)
        reached += difference(cos[order][:, order], chosen) >= found
    return (reached + 1) / (SHUFFLES + 1)


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Both differences, what shuffles give, the same before training, and the map."""
    steps = max(2, round(PRICE * budget))
    model, accuracy = train_vit(steps, seed)
    cos = similarity(model.embed.positions.detach(), (ROWS, ROWS)).flatten(1).double()
    start = torch.randn(1, 1 + ROWS**2, WIDTH, generator=torch.Generator().manual_seed(seed))
    before = similarity(start, (ROWS, ROWS)).flatten(1).double()
    random = torch.Generator().manual_seed(seed + 1)
    figures = [
        (name, difference(cos, chosen), share_of_shuffles(cos, chosen, random), difference(before, chosen))
        for name, chosen in pairs().items()
    ]
    columns = [list(column) for column in zip(*figures, strict=True)]
    found = dict(zip(("pairs", "difference", "by_chance", "untrained"), columns, strict=True))
    return {**found, "accuracy": accuracy, "steps": steps, "map": cos.tolist()}


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    return {"reached by chance": max(numbers["by_chance"]), "digits right": numbers["accuracy"]}


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """The map of each patch, in its place."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(5, 5), layout="constrained")
    cos = torch.tensor(numbers["map"]).unflatten(1, (ROWS, ROWS))
    for axes, image in zip(fig.subplots(ROWS, ROWS).flat, cos, strict=True):
        axes.imshow(image, vmin=-1, vmax=1, cmap="viridis")
        axes.set_axis_off()
    fig.suptitle("cosine of each position with all", fontsize=11, fontweight="bold")
    return fig
