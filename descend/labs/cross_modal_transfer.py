"""What was made for texts moves to images: encoders, loss, optimizer, sparse attention.

    joint model      I = W_I ViT(x)_cls / ‖·‖,   T = W_T BERT(w)_[CLS] / ‖·‖         one contrastive loss, one AdamW
    full             every patch sees all t others                                  t² pairs
    moved            Longformer's window in the ViT: 2 w + 1 neighbours, and the class token sees all and is seen

The two encoders are the models of this library, unchanged; only the matrices W are new. The window takes the place of
full attention in every block of the ViT, with the same weights under the same names. The images are scenes of one
object, the texts say its colour and its quarter. Measured: how often an image finds its text among all of them.

Systems: cross-modal-transfer
"""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from descend.data.streams.arrays import generator
from descend.data.toys.scenes import COLOURS as NAMES
from descend.data.toys.scenes import one_object
from descend.labs._evidence import AtLeast, AtMost, Below
from descend.labs._train import train
from descend.losses.contrastive import grouped_n_pair
from descend.metrics.retrieval import hits
from descend.models.bert import Bert, BertConfig
from descend.models.vit import ViT, ViTConfig
from descend.nn.attention.sliding_window import GlobalWindow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("MF-C.110",)
PRINTED = (
    "ViT and BERT encoders combine in one multimodal model with shared Adam, schedules and"
    " regularisation; sparse attention moves from Longformer to efficient ViTs."
)
CLAIM = (
    "Encoders of two kinds of data, a ViT and a BERT, join into one model with one loss and one optimizer, and match"
    " images with texts. Sparse attention made for long texts works in the ViT too, with fewer pairs."
)
PREDICTIONS = (
    AtLeast(
        "matched",
        0.8,
        "The share of images that find their text, the lesser of full and sparse attention.",
    ),
    AtMost("lost by sparsity", 0.15, "The accuracy of full attention less that of sparse attention."),
    Below("pairs", 0.7, "Pairs that sparse attention compares as a share of full attention's."),
)
SCOPE = "Scenes of one object and texts of three words, 512 images, encoders of width 32."
COLOURS, ROWS, COLUMNS = ("red", "green", "blue", "white"), ("top", "bottom"), ("left", "right")
WORDS = ("[CLS]", *COLOURS, *ROWS, *COLUMNS)
SIDE, PATCH, WIDTH, RADIUS = 20, 4, 32, 4
IMAGES, BATCH, RATE = 512, 48, 3e-3
BUDGET = 12.0
PRICE = 30  # training steps of both models that a second of one core buys
LEAST = 240  # steps below which nothing is learned


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Matches of new images by full and by sparse attention."""
    steps = max(2, round(PRICE * budget))
    tokens = (SIDE // PATCH) ** 2 + 1
    found: dict[str, Any] = {"steps": steps, "texts": len(texts()), "pairs": [tokens**2, sparse_pairs(tokens)]}
    losses, right = [], []
    for sparse in (False, True):
        torch.manual_seed(seed)
        model = Joint()
        if sparse:
            with_windows(model.image, RADIUS)
        losses.append(fit(model, steps, seed))
        right.append(matches(model, seed))
    return {**found, "attention": ["full", "window and class token"], "loss": losses, "right": right}


class Joint(nn.Module):
    """images (n, 3, s, s), texts (m, t) -> scores (n, m) / τ"""

    def __init__(self) -> None:
        super().__init__()
        self.image = ViT(ViTConfig(3, SIDE, PATCH, WIDTH, 2, 4, 2 * WIDTH))
        self.text = Bert(BertConfig(len(WORDS), 8, WIDTH, 2, 4, 2 * WIDTH, dropout=0.0))
        self.from_image, self.from_text = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(2))
        self.scale = nn.Parameter(torch.tensor(math.log(10.0)))
        for layer in self.modules():  # N(0, 0.02²) is for wide ones: narrow ones would start late
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, std=layer.in_features**-0.5)

    def forward(self, x: Tensor, tokens: Tensor) -> Tensor:
        images = normalize(self.from_image(self.image.features(x)), dim=-1)
        return self.scale.exp() * images @ normalize(self.from_text(self.text(tokens).pooled), dim=-1).T


class WindowWithClass(GlobalWindow):
    """Longformer's attention for a ViT: a window, and a class token at place 0 that sees all and is seen by all."""

    def forward(  # type: ignore[override]
        self, x: Tensor, source: Tensor | None = None, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        """x is the source, or its first rows."""
        source = x if source is None else source
        role = source.new_ones(source.shape[:2], dtype=torch.long)
        role[:, 0] = 2
        return super().forward(source, role[:, None, None], causal)[:, : x.shape[1]]


def with_windows(vit: ViT, radius: int) -> None:
    """Put the window in place of full attention, with the weights that are there."""
    for block in vit.encoder.blocks:
        moved = WindowWithClass(vit.config.width, vit.config.heads, radius)
        moved.load_state_dict(block.attn.state_dict())  # type: ignore[union-attr]
        block.attn = moved


def sparse_pairs(tokens: int) -> int:
    """Pairs of patches within the radius, and the class token's row and column."""
    place = torch.arange(1, tokens)
    near = int(((place[:, None] - place).abs() <= RADIUS).sum())
    return near + 2 * tokens - 1


def texts() -> Tensor:
    """ "[CLS] red top left" for every colour and quarter: (16, 4)"""
    return torch.tensor([[0, *(WORDS.index(word) for word in said)] for said in product(COLOURS, ROWS, COLUMNS)])


def images(n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Scenes (n, 3, s, s) of a circle, and the number of the text of each."""
    found = one_object(n, SIDE, generator(seed), [("circle", colour) for colour in COLOURS])
    colour = torch.tensor([COLOURS.index(NAMES[i]) for i in found.colour[:, 0].tolist()])
    x0, y0, x1, y1 = found.box[:, 0].unbind(1)
    below, right = (y0 + y1 >= SIDE).long(), (x0 + x1 >= SIDE).long()
    return 2 * found.x - 1, (2 * colour + below) * 2 + right


def fit(model: Joint, steps: int, seed: int) -> float:
    """The loss at the end, the mean of the last tenth."""
    x, y = images(IMAGES, seed)
    random = torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        rows = torch.randint(len(y), (BATCH,), generator=random)
        return grouped_n_pair(model(x[rows], texts()[y[rows]]), y[rows]).mean()

    course = train(model, loss, steps, RATE)
    tail = course[-max(1, steps // 10) :]
    return sum(tail) / len(tail)


@torch.no_grad()
def matches(model: Joint, seed: int) -> float:
    """How many of 256 new images find their text among all."""
    x, y = images(256, seed + 10_000)
    return float(hits(model.eval()(x, texts()), y[:, None] == torch.arange(len(texts()))).mean())


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    full, sparse = numbers["right"]
    return {
        "matched": min(full, sparse),
        "lost by sparsity": full - sparse,
        "pairs": numbers["pairs"][1] / numbers["pairs"][0],
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Right matches and pairs of both."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(8, 3.2), layout="constrained")
    for axes, name, title in zip(
        fig.subplots(1, 2), ("right", "pairs"), ("images matched to their text", "pairs per layer"), strict=True
    ):
        bars = axes.barh(numbers["attention"], numbers[name], color=["#d66820", "#2b6cd8"], height=0.55)
        axes.bar_label(bars, fmt="%.3g", padding=3, fontsize=9)
        axes.set_title(title, fontsize=11, loc="left", fontweight="bold")
        axes.margins(x=0.15)
        axes.invert_yaxis()
        axes.spines[["top", "right"]].set_visible(False)
    return fig
