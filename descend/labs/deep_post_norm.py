"""Deep stacks without warm-up: where the norm stands decides whether 50 layers train at all.

    post-norm    H' = LN(H + Sub(H))           every norm rescales the path back to the input
    pre-norm     H' = H + Sub(LN(H)), and a last norm

The same encoder blocks with the same initial weights, 50 of them, learn to say whether a token occurs in a short text,
by Adam at one constant rate: no warm-up, no decay. A shallow post-norm stack of 4 layers is trained the same way, to
show that it is the depth that this order of the norms cannot bear.

Systems: add-and-norm-and-stack
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from descend.engine.minimise import minimise
from descend.labs._evidence import AtLeast, Below
from descend.losses.classification import cross_entropy
from descend.nn.encoder import Encoder, EncoderBlock, PreNormBlock
from descend.optim.rules import Adam

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("MF-B.32", "VOM-B.21")
PRINTED = "Post-LN: LN(H + Sub(H)); Pre-LN: H + Sub(LN(H)) (its stability for deep stacks is stated without numbers)."
CLAIM = (
    "Trained without warm-up, a stack of 50 post-norm layers stalls where 50 pre-norm layers, and a few post-norm"
    " layers, learn."
)
PREDICTIONS = (
    Below(
        "post-norm over chance",
        0.1,
        "Accuracy of 50 post-norm layers above chance; refuted where it learns the task (0.35 above chance: 85%).",
        refuted=0.35,
    ),
)
CONTROLS = (
    AtLeast(
        "others learn",
        0.85,
        "Accuracy of 50 pre-norm and of 4 post-norm layers, the lesser: else the task is not learned at all.",
    ),
)
SCOPE = "Stacks of 4 and 50 layers of width 16 on a toy task, Adam at one constant rate."
VOCAB, LENGTH, WIDTH, HEADS, BATCH, RATE = 6, 6, 16, 2, 32, 3e-3
DEEP, SHALLOW, CLASSES = 50, 4, 2
STACKS: dict[str, tuple[type[EncoderBlock], int]] = {
    "post-norm, 4": (EncoderBlock, SHALLOW),
    "post-norm, 50": (EncoderBlock, DEEP),
    "pre-norm, 50": (PreNormBlock, DEEP),
}
BUDGET = 14.0
PRICE = 6  # steps of all stacks that a second of one core buys
LEAST = 80  # steps below which nothing is said


class Finder(nn.Module):
    """tokens (b, t) -> logits (b, 2): does token 0 occur? Read at the first place."""

    def __init__(self, block: type[EncoderBlock], depth: int):
        super().__init__()
        self.words = nn.Embedding(VOCAB, WIDTH)
        self.encoder = Encoder(block(WIDTH, HEADS, 2 * WIDTH, nn.ReLU()) for _ in range(depth))
        self.last = nn.LayerNorm(WIDTH) if block is PreNormBlock else nn.Identity()
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, tokens: Tensor) -> Tensor:
        return cast("Tensor", self.head(self.last(self.encoder(self.words(tokens)))[:, 0]))


def texts(n: int, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Tokens (n, t) and whether token 0 is there (n), once and anywhere; half of each."""
    x = torch.randint(1, VOCAB, (n, LENGTH), generator=random)
    y = torch.randint(CLASSES, (n,), generator=random)
    place = torch.randint(LENGTH, (n, 1), generator=random)
    return x.masked_fill((torch.arange(LENGTH) == place) & (y[:, None] == 1), 0), y


def measure(seed: int, budget: float) -> dict[str, Any]:
    """The loss of each stack at the start and at the end, its accuracy on new texts, and its first gradient."""
    steps = max(2, round(PRICE * budget))
    names = ("first_loss", "last_loss", "accuracy", "gradient_ratio")
    columns: dict[str, list[Any]] = {"stack": list(STACKS), **{name: [] for name in names}}
    curves = []
    for block, depth in STACKS.values():
        torch.manual_seed(seed)
        model, random = Finder(block, depth), torch.Generator().manual_seed(seed)
        ratio = compare_gradients(model, torch.Generator().manual_seed(seed + 1))

        def loss(model: Finder = model, random: torch.Generator = random) -> Tensor:
            x, y = texts(BATCH, random)
            return cross_entropy(model(x), y).mean()

        curve = minimise(model, loss, steps, Adam(RATE))
        tail = curve[-max(1, steps // 10) :]
        x, y = texts(1000, torch.Generator().manual_seed(seed + 10_000))
        with torch.no_grad():
            right = float((model(x).argmax(-1) == y).double().mean())
        for name, value in zip(names, (curve[0], sum(tail) / len(tail), right, ratio), strict=True):
            columns[name].append(value)
        curves.append(curve)
    return {**columns, "steps": steps, "chance": 1 / CLASSES, "curves": curves}


def compare_gradients(model: Finder, random: torch.Generator) -> float:
    """‖∂L/∂W‖ of the first layer's feed-forward part over that of the last layer's, before any step."""
    x, y = texts(BATCH, random)
    blocks = cast("list[EncoderBlock]", list(model.encoder.blocks))
    ends = [blocks[0].mlp.up.weight, blocks[-1].mlp.up.weight]
    first, last = torch.autograd.grad(cross_entropy(model(x), y).mean(), ends)
    return float(first.norm() / last.norm())


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    accuracy = dict(zip(numbers["stack"], numbers["accuracy"], strict=True))
    shallow, post, pre = (accuracy[name] for name in STACKS)
    return {"post-norm over chance": post - numbers["chance"], "others learn": min(shallow, pre)}


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """The losses over the steps."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(7, 3.8), layout="constrained")
    axes = fig.subplots()
    for name, curve, color in zip(numbers["stack"], numbers["curves"], ("0.6", "#d66820", "#2b6cd8"), strict=True):
        axes.plot(curve, color=color, lw=1.2, label=name)
    axes.set_xlabel("step")
    axes.set_title("training loss without warm-up", fontsize=11, loc="left", fontweight="bold")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
