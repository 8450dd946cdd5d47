"""A toy of DALL-E: a caption of two words, an image of eight by eight pixels, one transformer over both.

    captions     start, one of four colours, left or right
    images       8 × 8 × 3, grey with noise, a square of that colour on that side; 4 × 4 tokens of 16
    tokens       of a VQ-VAE, as in the book, and of a discrete VAE, as in the original
    followed     share of drawn images whose square has the caption's colour and side, read off the pixels
    shuffled     the same against the captions of other images: chance is 1/8

Systems: dall-e-1
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.labs._evidence import AtLeast
from descend.labs._token_stages import train_stages
from descend.models.dalle import DalleConfig
from descend.models.dvae import DVAEConfig
from descend.models.vq_vae import VQVAEConfig
from descend.seeds import generator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-C.72",)
PRINTED = (
    "DALL-E 1: images become discrete tokens (VQ-VAE in the book, a discrete VAE in the original);"
    " a transformer models text and image tokens."
)
CLAIM = "Images drawn token by token after a caption show what the caption says."
PREDICTIONS = (
    AtLeast(
        "followed",
        0.8,
        "The share of drawn images with the colour and side of their caption, the worse of both"
        " tokenizers; chance is 1/8.",
    ),
)
SCOPE = "Captions of two words, images of 8×8 pixels, 16 tokens of 16."
COLOURS = torch.tensor([[0.9, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.2, 0.9], [0.9, 0.9, 0.1]])
WORDS, CAPTION = 1 + len(COLOURS) + 2, 3
CONFIG = DalleConfig(VQVAEConfig((3, 8, 8), 16, 1, 0, 16, 4), WORDS, CAPTION, width=48, depth=2, heads=4, top_k=16)
ORIGINAL = replace(CONFIG, codes=DVAEConfig((3, 8, 8), 16, 1, 0, 16, 4))
DRAWN, LEAST = 64, 150
BUDGET = 6.0
PRICE = 60  # steps of each transformer, after half as many again of what makes tokens, that a second of one core buys


def draw_pairs(n: int, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Captions (n, 3) and images (n, 3, 8, 8) in −1..1."""
    colour = torch.randint(len(COLOURS), (n,), generator=random)
    side = torch.randint(2, (n,), generator=random)
    x = 0.5 + 0.03 * torch.randn(n, 3, 8, 8, generator=random)
    top = torch.randint(1, 4, (n,), generator=random)
    rows = (torch.arange(8) - top[:, None]).unsqueeze(2)
    inside = (rows >= 0) & (rows < 4) & (torch.arange(8) // 4 == side[:, None, None])
    x = torch.where(inside[:, None], COLOURS[colour][:, :, None, None], x)
    captions = torch.stack([torch.zeros_like(colour), 1 + colour, 1 + len(COLOURS) + side], 1)
    return captions, 2 * x - 1


def read_images(x: Tensor) -> Tensor:
    """The captions that images (n, 3, 8, 8) deserve: the more colourful side, and the nearest colour there."""
    pixels = (x + 1) / 2
    halves = pixels.unflatten(3, (2, 4)).permute(0, 3, 2, 4, 1).flatten(2, 3)  # (n, 2, 32, 3)
    vivid = halves.amax(-1) - halves.amin(-1)
    side = vivid.sum(2).argmax(1)
    rows = torch.arange(len(x))
    weight = vivid[rows, side][..., None]
    mean = (halves[rows, side] * weight).sum(1) / weight.sum(1).clamp(min=1e-6)
    colour = torch.cdist(mean, COLOURS).argmin(1)
    return torch.stack([torch.zeros_like(colour), 1 + colour, 1 + len(COLOURS) + side], 1)


def measure(seed: int, budget: float) -> dict[str, Any]:
    """How often drawn images follow their caption."""
    steps = max(4, round(PRICE * budget))
    random = generator(seed, 1)
    captions, x = draw_pairs(2000, random)
    wanted, followed, shuffled = captions[:DRAWN], [], []
    for config in (CONFIG, ORIGINAL):
        model = train_stages(config, captions, x, (3 * steps // 2, steps), seed)
        with torch.no_grad():
            tokens = model.draw_images(wanted, torch.rand(DRAWN, CONFIG.places, generator=random))
            made = model.codes.from_tokens(tokens)
        found = read_images(made)
        followed.append(float((found == wanted).all(1).double().mean()))
        shuffled.append(float((found == wanted.roll(1, 0)).all(1).double().mean()))
    return {
        "tokens": ["VQ-VAE", "discrete VAE"],
        "followed": followed,
        "shuffled": shuffled,
        "read_right": float((read_images(x) == captions).all(1).double().mean()),
        "steps": steps,
        "captions": wanted[:16].tolist(),
        "images": ((made[:16].clamp(-1, 1) + 1) / 2).movedim(1, -1).tolist(),
    }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    return {"followed": min(numbers["followed"])}


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Sixteen images under their captions."""
    from matplotlib.figure import Figure

    names = ("", "red", "green", "blue", "yellow", "left", "right")
    fig = Figure(figsize=(7, 2.4), layout="constrained")
    for axes, image, caption in zip(fig.subplots(2, 8).flat, numbers["images"], numbers["captions"], strict=True):
        axes.imshow(image)
        axes.set_title(" ".join(names[i] for i in caption[1:]), fontsize=7)
        axes.set_axis_off()
    return fig
