"""A convolutional network beside a vision transformer: what each assumes before it has seen an image, and its price.

    convolution     a shifted image gives shifted maps (away from the border); after L layers a number has seen
                    1 + Σ_l (k_l − 1) Π_{m<l} s_m pixels, and the kernel is shared by all places
    attention       every patch sees every other at once; permuted patches give permuted outputs: equivariance. The mean
                    over patches does not change: invariance. Positions end both, and with them the ViT no longer moves
                    with an image that is shifted by whole patches. Its projections are shared by all places, its
                    weights are not: they are computed from the content
    data            what is built in need not be learned: with few images the CNN is ahead, and the gap closes

MF 27.3.2 calls attention permutation invariant; it is equivariant, and only what is pooled from it is invariant. The
books put the crossing at 1 to 10 million images. This lab has 1,200: it measures the beginning of the curve, two
networks of about as many parameters, trained for as many steps, and says nothing of where they cross.

Systems: cnn-versus-vit-lab
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from descend.data.images.digits import load_digits_split
from descend.labs._evidence import Above, AtMost, Below
from descend.labs._train import train
from descend.metrics import equivariance as motion
from descend.metrics.attention_maps import grid_distance
from descend.models.vit import ViTConfig, ViTForImageClassification
from descend.nn.attention.maps import attention_maps
from descend.nn.attention.self_attention import SelfAttention
from descend.ops.attention.properties import equivariance_error, invariance_error
from descend.theory.convolution import receptive_field
from descend.weights.labels import Labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("MF-B.66", "MF-C.72", "MF-C.73", "DLN-B.89")
PRINTED = (
    'CNNs are local and equivariant, ViTs see everything and are permutation "invariant" (erratum:'
    " equivariant); below 1M images a CNN is better, above 10M often a ViT."
)
CLAIM = (
    "A convolution moves with its image and sees a field that grows layer by layer; attention sees everything at once"
    " and is equivariant, not invariant, to the order of its patches. Trained on few images a CNN is ahead of a vision"
    " transformer of its size, and the gap closes as images are added."
)
PREDICTIONS = (
    Below(
        "off where it moves along",
        1e-9,
        "How far the convolution, and the ViT without positions, are from moving with the image: rounding.",
    ),
    Above("ViT off", 1e-3, "The same for the ViT with positions: it does not move along."),
    AtMost(
        "field off",
        0,
        "Pixels by which the measured fields differ from the closed form, and the ViT's from the whole image.",
    ),
    Below(
        "order off",
        1e-9,
        "How far attention is from equivariant, and its mean from invariant, under permuted patches: rounding.",
    ),
    Above(
        "not invariant",
        1e-3,
        "How far attention itself is from invariant, and from equivariant with positions.",
    ),
    Above(
        "lead in errors",
        2,
        "The CNN's lead at the two smallest counts in its standard errors, the lesser.",
    ),
    Below(
        "gap left",
        0.5,
        "The gap with the most images as a share of the largest gap; near 1 it would not close.",
    ),
)
PRINTED_PREDICTIONS = (AtMost("not invariant", 1e-9, "The printed form: attention is permutation invariant."),)
SCOPE = (
    "40 to 1,000 images and small networks: the beginning of the curve. Where they cross (millions"
    " of images) is out of reach here."
)
COUNTS = (40, 200, 1000)  # training images
STEPS, BATCH, RATE = 200, 40, 3e-3
BUDGET = 26.0
PRICE = 0.15  # draws of all counts, for both networks, that a second of one core buys


def measure(seed: int, budget: float) -> dict[str, Any]:
    """The biases, exactly, and accuracy against training images."""
    draws = max(1, round(PRICE * budget))
    splits = load_digits_split()
    x, y = standard(splits.train.x), splits.train.y
    seen = standard(torch.cat([splits.valid.x, splits.test.x])), torch.cat([splits.valid.y, splits.test.y])
    right: dict[str, list[list[float]]] = {"cnn": [], "vit": []}
    for draw in range(draws):
        order = torch.randperm(len(y), generator=torch.Generator().manual_seed(seed + draw))
        for name, rows in right.items():
            rows.append([accuracy(name, (x[order[:n]], y[order[:n]]), seen, seed + draw) for n in COUNTS])
    columns: dict[str, Any] = {"images": list(COUNTS)}
    for name, rows in right.items():
        columns[name] = torch.tensor(rows).mean(0).tolist()
    gaps = torch.tensor(right["cnn"]) - torch.tensor(right["vit"])
    error = (gaps.std(0) / math.sqrt(draws)).tolist() if draws > 1 else [math.nan] * len(COUNTS)
    sizes = {name: sum(p.numel() for p in build(name, 0).parameters()) for name in right}
    distances = measure_distances(fit_model("vit", (x, y), seed), seen[0])
    facts = {"draws": draws, "parameters": sizes, "attention_distance": distances, **biases(seed)}
    return {**columns, "gap": gaps.mean(0).tolist(), "error": error, **facts}


def standard(x: Tensor) -> Tensor:
    """Mean 0 and variance 1, about: the digits have 0.305 and 0.376."""
    return (x - 0.305) / 0.376


def build(name: str, seed: int) -> nn.Module:
    """One of the two, for images of 8 × 8 and ten classes."""
    torch.manual_seed(seed)
    if name == "vit":
        digits = Labels(tuple("0123456789"))
        vit = ViTForImageClassification(ViTConfig(1, 8, 2, 32, 2, 4, 64, labels=digits))
        for layer in vit.modules():  # N(0, 0.02²) is for wide ones: a narrow one would start late
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, std=layer.in_features**-0.5)
        return vit
    layers = [convolution(1, 16), convolution(16, 32), nn.MaxPool2d(2), convolution(32, 40), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(160, 10))


def convolution(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU())


def fit_model(name: str, given: tuple[Tensor, Tensor], seed: int) -> nn.Module:
    """One of the two, trained on these images."""
    model, (x, y) = build(name, seed), given
    random = torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        rows = torch.randint(len(y), (BATCH,), generator=random)
        return cross_entropy(model(x[rows]), y[rows])

    train(model, loss, STEPS, RATE)
    return model.eval()


@torch.no_grad()
def accuracy(name: str, given: tuple[Tensor, Tensor], seen: tuple[Tensor, Tensor], seed: int) -> float:
    """Of new images, after a training on these."""
    model = fit_model(name, given, seed)
    return float((model(seen[0]).argmax(1) == seen[1]).float().mean())


@torch.no_grad()
def measure_distances(vit: nn.Module, x: Tensor) -> list[float]:
    """How many patches away each layer looks on average, over images, heads and patches; 16 patches, 4 on a side."""
    return [float(grid_distance(a, (4, 4)).mean()) for a in attention_maps(vit, x).values()]


def biases(seed: int) -> dict[str, float]:
    """What holds for any weights: errors of equivariance and invariance, and how far one number sees."""
    torch.manual_seed(seed)
    convolutions = nn.Sequential(convolution(1, 4), convolution(4, 4), convolution(4, 4)).double()
    image = torch.randn(1, 1, 16, 16, dtype=torch.float64)
    vit = ViTForImageClassification(ViTConfig(1, 16, 4, 16, 1, 2, 32)).double()
    layer, patches = SelfAttention(16, 2).double(), torch.randn(1, 9, 16, dtype=torch.float64)
    order = torch.randperm(9, generator=torch.Generator().manual_seed(seed))
    places = torch.randn(9, 16, dtype=torch.float64)

    def by_patches(f: Any) -> float:
        """The error when the image is rolled by whole patches: 4 and 8 pixels."""
        return motion.equivariance_error(f, image, lambda x: x.roll((4, 8), (2, 3)), lambda y: y.roll((1, 2), (2, 3)))

    with torch.no_grad():
        moved = motion.equivariance_error(convolutions, image, lambda x: motion.shift_zeros(x, (1, 2)), border=5)
        vit_moved = by_patches(vit.maps)
        kept = vit.embed.positions.clone()
        vit.embed.positions.zero_()
        bare = by_patches(vit.maps)
        vit.embed.positions.copy_(kept)
    return {
        "convolution_moves": moved,
        "vit_moves": vit_moved,
        "vit_without_positions_moves": bare,
        "field": receptive_field([(3, 1, 1)] * 3).size,
        "field_measured": reach(convolutions, image),
        "vit_field_measured": reach(vit.maps, image),
        "attention_equivariance": equivariance_error(layer, patches, order),
        "attention_invariance": invariance_error(layer, patches, order),
        "pooled_invariance": invariance_error(lambda x: layer(x).mean(1), patches, order),
        "with_positions": equivariance_error(lambda x: layer(x + places), patches, order),
    }


def reach(f: Any, image: Tensor) -> int:
    """How many rows of the image one number in the middle of the maps depends on."""
    x = image.clone().requires_grad_()
    maps = f(x)
    middle = maps[0, :, maps.shape[2] // 2, maps.shape[3] // 2]
    (slope,) = torch.autograd.grad(middle @ torch.arange(1, len(middle) + 1, dtype=middle.dtype), x)
    return int((slope[0, 0].abs().sum(1) > 0).sum())


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    return {
        "off where it moves along": max(numbers["convolution_moves"], numbers["vit_without_positions_moves"]),
        "ViT off": numbers["vit_moves"],
        "field off": abs(numbers["field_measured"] - numbers["field"]) + abs(numbers["vit_field_measured"] - 16),
        "order off": max(numbers["attention_equivariance"], numbers["pooled_invariance"]),
        "not invariant": min(numbers["attention_invariance"], numbers["with_positions"]),
        "lead in errors": min(g / e for g, e in zip(numbers["gap"][:2], numbers["error"][:2], strict=True)),
        "gap left": numbers["gap"][-1] / max(numbers["gap"]),
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["draws"] < 3 else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Accuracy of both against the number of training images."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6.4, 4), layout="constrained")
    axes = fig.subplots()
    for name, colour, label in (("cnn", "#d66820", "CNN"), ("vit", "#2b6cd8", "vision transformer")):
        axes.plot(numbers["images"], numbers[name], "o-", color=colour, ms=5, label=label)
    axes.fill_between(numbers["images"], numbers["vit"], numbers["cnn"], color="0.85", label="gap")
    axes.set_xscale("log")
    axes.set_xticks(numbers["images"], [str(n) for n in numbers["images"]])
    axes.set_xlabel("training images")
    axes.set_title("accuracy on new digits", fontsize=11, loc="left", fontweight="bold")
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
