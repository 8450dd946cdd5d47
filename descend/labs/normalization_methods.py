"""Batch, layer, group and instance normalization side by side: small batches, and sequences of different lengths.

    images       a small convolutional network on the embedded digits; the gradient is always that of 32 images, but the
                 statistics come from 1, 2, 4, … 32 of them, as on 32, 16, 8, … 1 machines. Measured: held-out loss.
    sequences    a network that reads padded sequences token by token; "padding" is how far the outputs of the same
                 sequences move when the batch is padded by twice as much, and the loss is that on held-out sequences
                 of other lengths than the trained ones.

    batch        over the examples and places of a channel        layer       over all channels of an example (a token)
    group        over a quarter of the channels                   instance    over the places of one channel

Only batch normalization knows how many examples there are: the other three have one figure for all batch sizes, and
that they do is measured too. In sequences layer and group normalization look at one token, the other two across tokens.

Systems: normalization-comparison
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from descend.data.images.digits import load_digits_split
from descend.labs._evidence import Above, AtMost, Below
from descend.labs._train import train
from descend.losses.classification import cross_entropy
from descend.nn.norms import BatchNorm

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("MF-A.103", "MF-B.40")
PRINTED = (
    "Batch norm for large batches and CNNs, layer norm per sample for sequences, group norm for"
    " small batches, instance norm for style transfer (one table is missing)."
)
CLAIM = (
    "With fewer examples in its statistics batch normalization loses, and what it makes of a sequence depends on the"
    " padding; layer normalization depends on neither, group and instance normalization not on the batch."
)
PREDICTIONS = (
    Above(
        "lost in batches of 2",
        1.2,
        "Loss of batch normalization with 2 examples over that with 32.",
    ),
    Below(
        "others moved",
        1e-5,
        "How far the other three move with the batch, and layer and group with the padding: rounding.",
    ),
    Above("batch norm moved", 1e-2, "How far batch normalization moves with either."),
)
CONTROLS = (AtMost("learned", 1, "Its loss with all 32 examples: above it, it has not learned."),)
SCOPE = 'Small networks on 8×8 digits and on toy sequences; "style transfer" is not tested.'
CHANNELS, GROUPS, BATCH, RATE = 16, 4, 32, 1e-2
CHUNKS = (1, 2, 4, 8, 16, 32)
NORMS: dict[str, Callable[[], nn.Module]] = {
    "batch": lambda: BatchNorm(CHANNELS),
    "layer": lambda: nn.GroupNorm(1, CHANNELS),
    "group": lambda: nn.GroupNorm(GROUPS, CHANNELS),
    "instance": lambda: nn.GroupNorm(CHANNELS, CHANNELS),
}
TOKENS, SHORT, LONG = 6, 8, 16
BUDGET = 12.0
PRICE = 10  # steps of all networks that a second of one core buys
LEAST = 60  # steps below which nothing is said


class ImageNet(nn.Module):
    """images (b, 1, 8, 8) -> logits (b, 10); the norm sees `chunk` images at a time while training."""

    def __init__(self, norm: Callable[[], nn.Module], chunk: int = BATCH):
        super().__init__()
        self.chunk = chunk
        self.first, self.second = nn.Conv2d(1, CHANNELS, 3, padding=1), nn.Conv2d(CHANNELS, CHANNELS, 3, 2, 1)
        self.norms, self.head = nn.ModuleList([norm(), norm()]), nn.Linear(16 * CHANNELS, 10)

    def forward(self, x: Tensor) -> Tensor:
        for conv, norm in zip((self.first, self.second), self.norms, strict=True):
            z = conv(x)
            parts = z.split(self.chunk) if self.training else [z]
            x = torch.cat([norm(part) for part in parts]).relu()
        y: Tensor = self.head(x.flatten(1))
        return y


class SequenceNet(nn.Module):
    """tokens (b, t), −1 for padding -> logits (b, 2): the mean over real tokens of two normalised layers."""

    def __init__(self, name: str):
        super().__init__()
        self.by_token = name in ("layer", "group")
        self.embed, self.norm = nn.Embedding(TOKENS + 1, CHANNELS), NORMS[name]()
        self.mix, self.head = nn.Conv1d(CHANNELS, CHANNELS, 3, padding=1), nn.Linear(CHANNELS, 2)

    def forward(self, tokens: Tensor) -> Tensor:
        real = tokens >= 0
        z = self.mix(self.embed(tokens + 1).mT * real[:, None])  # padding is 0, whatever it has learned
        if self.by_token:
            z = self.norm(z.mT.flatten(0, 1)).unflatten(0, tokens.shape).mT
        else:
            z = self.norm(z[..., None])[..., 0]
        pooled = (z.relu() * real[:, None]).sum(2) / real.sum(1, keepdim=True)
        y: Tensor = self.head(pooled)
        return y


def sequences(n: int, longest: int, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Tokens (n, longest) of lengths from half the longest on, and whether a 0 is followed by a 1 anywhere."""
    x = torch.randint(TOKENS, (n, longest), generator=random)
    y = torch.randint(2, (n,), generator=random)
    at = torch.randint(longest // 2 - 1, (n,), generator=random)
    follows = (x[:, :-1] == 0) & (x[:, 1:] == 1)
    x[:, 1:][follows] = 2  # none is left by chance
    rows = torch.arange(n)[y == 1]
    x[rows, at[rows]], x[rows, at[rows] + 1] = 0, 1
    length = torch.randint(longest // 2, longest + 1, (n, 1), generator=random)
    return x.masked_fill(torch.arange(longest) >= length, -1), y


def train_images(name: str, chunk: int, steps: int, seed: int) -> float:
    """Held-out loss with the statistics of `chunk` images."""
    torch.manual_seed(seed)
    model, digits, random = ImageNet(NORMS[name], chunk), load_digits_split(), torch.Generator().manual_seed(seed)
    x, y = digits.train.x, digits.train.y

    def loss() -> Tensor:
        rows = torch.randint(len(y), (BATCH,), generator=random)
        return cross_entropy(model(x[rows]), y[rows]).mean()

    train(model, loss, steps, RATE)
    with torch.no_grad():
        return float(cross_entropy(model.eval()(digits.valid.x), digits.valid.y).mean())


@torch.no_grad()
def chunk_effect(name: str, seed: int) -> float:
    """How far the outputs of 32 images move in training when the norm sees 2 at a time."""
    torch.manual_seed(seed)
    model, x = ImageNet(NORMS[name]).train(), load_digits_split().train.x[:BATCH]
    whole = model(x)
    model.chunk = 2
    return float((model(x) - whole).abs().max())


def train_sequences(name: str, steps: int, seed: int) -> tuple[float, float]:
    """The effect of padding on the outputs in training, and the held-out loss of longer sequences."""
    torch.manual_seed(seed)
    model, random = SequenceNet(name), torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        x, y = sequences(BATCH, SHORT, random)
        return cross_entropy(model(x), y).mean()

    train(model, loss, steps, RATE)
    x, _ = sequences(BATCH, SHORT, random)
    longer, y = sequences(1000, LONG, random)
    with torch.no_grad():
        moved = model(nn.functional.pad(x, (0, SHORT), value=-1)) - model(x)
        return float(moved.abs().max()), float(cross_entropy(model.eval()(longer), y).mean())


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Losses over the batch sizes, and on sequences."""
    steps = max(2, round(PRICE * budget))
    images: dict[str, list[float]] = {"examples": [float(chunk) for chunk in CHUNKS]}
    for name in NORMS:
        sizes = CHUNKS if name == "batch" else CHUNKS[-1:]
        losses = [train_images(name, chunk, steps, seed) for chunk in sizes]
        images[name] = losses if name == "batch" else losses * len(CHUNKS)
    columns = {"norm": list(NORMS), "chunk_effect": [chunk_effect(name, seed) for name in NORMS]}
    found = [train_sequences(name, 2 * steps, seed) for name in NORMS]
    padding, longer = (list(column) for column in zip(*found, strict=True))
    return {**columns, "padding_effect": padding, "longer_loss": longer, "images": images, "steps": steps}


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    chunk, padding = (dict(zip(NORMS, numbers[f"{name}_effect"], strict=True)) for name in ("chunk", "padding"))
    batch = numbers["images"]["batch"]
    return {
        "lost in batches of 2": batch[CHUNKS.index(2)] / batch[-1],
        "others moved": max(*(chunk[n] for n in NORMS if n != "batch"), padding["layer"], padding["group"]),
        "batch norm moved": min(chunk["batch"], padding["batch"]),
        "learned": batch[-1],
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """The loss over the batch size, and the effect of padding."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = fig.subplots(1, 2)
    for name, color in zip(NORMS, ("#d66820", "#2b6cd8", "#3b8f4a", "0.5"), strict=True):
        left.plot(numbers["images"]["examples"], numbers["images"][name], "o-", ms=4, color=color, label=name)
    left.set_xscale("log", base=2)
    left.set_xlabel("examples in the statistics")
    left.set_title("held-out loss", fontsize=11, loc="left", fontweight="bold")
    left.legend(frameon=False)
    right.bar(numbers["norm"], numbers["padding_effect"], color="#2b6cd8")
    right.set_title("how far padding moves the outputs", fontsize=11, loc="left", fontweight="bold")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    return fig
