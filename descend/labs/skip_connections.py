"""What skips are for: the edges of objects, with and without maps handed across at full resolution.

    U-Net             maps of every level are joined to the way up
    zeroed            the same trained U-Net, its skips set to 0: only the bottom speaks
    encoder-decoder   its twin without skips, trained as long: all detail must go through the code
    FCN-8s, 16s, 32s  scores of two, one and no finer map are added

All learn generated scenes, objects against ground, for as many steps, AdamW, with batch norm. The FCNs learn a few
larger scenes by heart and are asked about these: what limits them is only how coarse their maps are. The others are
asked about new scenes. Measured: the share of right pixels among those with the other class next to them (edge), and
among all pixels (whole); 0.5 at the edge is a coin.
A U-Net is not an autoencoder (DLN): its bottom alone does not decode. The encoder-decoder's code does, by construction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from descend.data.streams.arrays import generator
from descend.data.toys.scenes import scenes
from descend.labs._evidence import Above, AtLeast
from descend.labs._train import train
from descend.losses.segmentation import mask_cross_entropy
from descend.metrics.segmentation import near_boundary
from descend.models.conv_encoder_decoder import ConvEncoderDecoder, ConvEncoderDecoderConfig
from descend.models.fcn import FCN, FCNConfig
from descend.models.unet import UNet, UNetConfig

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-A.194", "DLN-A.195", "DLN-A.193", "S940-DLD.184")
PRINTED = "Skips concatenate maps of equal resolution; a U-Net is not an autoencoder: its bottom alone does not decode."
CLAIM = (
    "At the edges of objects a U-Net is right more often than its twin without skips, and fails when its skips are"
    " zeroed; every finer map that an FCN adds makes its edges better, even in scenes it has memorized: 8s, 16s, 32s."
)
PREDICTIONS = (
    Above("lead over twin", 0, "Accuracy at edges, U-Net less its twin without skips."),
    Above("zeroed loses", 0.1, "U-Net less itself with its skips set to 0."),
    AtLeast("8s over 16s", 0, "FCN-8s less FCN-16s at edges of scenes that both know by heart."),
    AtLeast("16s over 32s", 0, "FCN-16s less FCN-32s."),
)
CONTROLS = (AtLeast("learned", 0.7, "The U-Net's accuracy at edges; 0.5 is a coin."),)
SCOPE = "Generated scenes of 32×32 and 96×96, networks of width 8."
SIDE, BATCH, HELD = 32, 8, 64
WIDTH, DEPTH = 8, 3
STAGES: tuple[int, ...] = (8, 12, 16, 24, 32)
STRIDES = (8, 16, 32)
BUDGET = 9.0
PRICE = 11  # steps of every model that a second of one core buys
LEAST = 40
LARGE, HEART = 96, 4  # side and number of the scenes that the FCNs learn by heart


def models() -> dict[str, nn.Module]:
    """The five networks that are trained."""
    fcns = {f"FCN-{s}s": FCN(FCNConfig(3, 2, STAGES, (1,) * 5, 32, 3, s, 0.0, "batch")) for s in STRIDES}
    return {
        "U-Net": UNet(UNetConfig(3, 2, WIDTH, DEPTH, padding=1, norm="batch")),
        "encoder-decoder": ConvEncoderDecoder(ConvEncoderDecoderConfig(3, 2, WIDTH, DEPTH, norm="batch")),
        **fcns,
    }


def draw_scenes(n: int, side: int, seed: int) -> tuple[Tensor, Tensor]:
    """Scenes (n, 3, s, s) about 0, and 1 where there is an object (n, s, s)."""
    made = scenes(n, side, generator(seed), objects=(2, 3))
    return 4 * (made.x - 0.5), (made.mask > 0).long()


def learn(model: nn.Module, x: Tensor, y: Tensor, steps: int, seed: int) -> None:
    """Train for this many steps of BATCH scenes each, or of all where there are fewer."""
    random = generator(seed, 1)

    def loss() -> Tensor:
        rows = torch.randperm(len(x), generator=random)[:BATCH]
        return mask_cross_entropy(model(x[rows]), y[rows]).mean()

    train(model, loss, steps, lr=1e-2)
    model.eval()


def shares(logits: Tensor, y: Tensor) -> dict[str, float]:
    """Share of right pixels, at the edges and everywhere."""
    right = logits.argmax(dim=1) == y
    return {"edge": right[near_boundary(y)].double().mean().item(), "whole": right.double().mean().item()}


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Shares of right pixels of each network after the same number of steps."""
    steps = max(LEAST, round(PRICE * budget))
    x, y = draw_scenes(HELD + min(BATCH * steps, 2000), SIDE, seed)
    (new_x, x), (new_y, y) = ((part[:HELD], part[HELD:]) for part in (x, y))
    known = draw_scenes(HEART, LARGE, seed)
    torch.manual_seed(seed)
    found: dict[str, dict[str, float]] = {}
    for name, model in models().items():
        if isinstance(model, FCN):
            learn(model, *known, steps, seed)
            found[name] = shares(model(known[0]), known[1])
            continue
        learn(model, x, y, steps, seed)
        found[name] = shares(model(new_x), new_y)
        if isinstance(model, UNet):
            bottom, skips = model.contract(new_x)
            logits = model.head(model.expand(bottom, [torch.zeros_like(s) for s in skips]))
            found["zeroed"] = shares(logits, new_y)
    return {
        "network": list(found),
        "edge": [values["edge"] for values in found.values()],
        "whole": [values["whole"] for values in found.values()],
        "steps": steps,
    }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    edge = dict(zip(numbers["network"], numbers["edge"], strict=True))
    fine, middle, coarse = (edge[f"FCN-{s}s"] for s in STRIDES)
    return {
        "lead over twin": edge["U-Net"] - edge["encoder-decoder"],
        "zeroed loses": edge["U-Net"] - edge["zeroed"],
        "8s over 16s": fine - middle,
        "16s over 32s": middle - coarse,
        "learned": edge["U-Net"],
    }


def figure(numbers: dict[str, Any]) -> Figure:
    """Two bars for each network."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(9, 3.6), layout="constrained")
    axes = fig.subplots()
    at = range(len(numbers["network"]))
    axes.bar([i - 0.2 for i in at], numbers["edge"], 0.38, label="at the edges", color="#2b6cd8")
    axes.bar([i + 0.2 for i in at], numbers["whole"], 0.38, label="all pixels", color="#b9c4d6")
    axes.set_xticks(list(at), numbers["network"])
    axes.set_ylim(0.4, 1.0)
    axes.set_title(f"correct pixels after {numbers['steps']} steps", fontsize=11, loc="left", fontweight="bold")
    axes.legend(frameon=False, fontsize=9, ncols=2, loc="upper right")
    axes.grid(axis="y", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
