"""L1 against L2 for the restoration of images: the same network, trained with |r| and with r².

    L2   minimised by the mean of what may have been there: a grey between black and white, a blurred edge
    L1   minimised by the median: one of the two, a sharper edge; its gradient does not fade as the error does

Digits of 8×8 pixels are averaged to 4×4 and made noisy; a small network restores them. Measured on images that it has
not seen, over several trainings: sharpness (mean squared difference of neighbouring pixels, as a share of the true
images'), PSNR = −10 log₁₀ of an image's mean squared error, and the mean absolute error. DLN claims sharper images for
L1 and says nothing of PSNR: that is a function of the squared error, which L2 minimises.

Systems: l1-loss
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from descend.data.images.digits import load_digits_split
from descend.engine.minimise import minimise
from descend.labs._evidence import Above
from descend.losses.regression import absolute_error, squared_error
from descend.losses.risk import per_example
from descend.optim.rules import Adam
from descend.optim.schedules import Linear

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-A.55",)
PRINTED = "L2 restoration gives blurry images, since its gradient fades near 0; L1 gives sharper ones."
CLAIM = "Restored by the same network, images are sharper when it is trained with the L1 loss than with the L2 loss."
PREDICTIONS = (
    Above(
        "sharper",
        4,
        "Sharpness of L1's images less that of L2's, in standard errors over trainings; blurrier by 4 refutes it.",
        refuted=-4,
    ),
)
SCOPE = (
    "Digits of 8×8 pixels, averaged to 4×4 with noise, one small network. DLN says nothing of PSNR, which L2 minimises."
)
LOSSES = {"l1": absolute_error, "l2": squared_error}
STEPS, BATCH, RATE, NOISE = 200, 64, 1e-2, 0.1
BUDGET = 5.0
PRICE = 3.6  # trainings with each of the two losses that a second of one core buys
SHOWN = 6  # images in the figure


def degrade(x: Tensor, random: torch.Generator) -> Tensor:
    """Every 2×2 pixels averaged, and noise."""
    small = nn.functional.avg_pool2d(x, 2)
    return small + NOISE * torch.randn(small.shape, generator=random)


def sharpness(x: Tensor) -> Tensor:
    """The mean squared difference of neighbouring pixels, of each image."""
    return x.diff(dim=-1).square().mean((1, 2, 3)) + x.diff(dim=-2).square().mean((1, 2, 3))


def psnr(yhat: Tensor, y: Tensor) -> Tensor:
    """−10 log₁₀ of the mean squared error of each image, for pixels in 0..1."""
    return -10 * (per_example(squared_error(yhat, y)) / y[0].numel()).log10()


def train_restorer(loss: Callable[[Tensor, Tensor], Tensor], x: Tensor, seed: int) -> nn.Module:
    """A network that restores images like x; the same start and the same batches for every loss."""
    random = torch.Generator().manual_seed(seed)
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 64), nn.Unflatten(1, (1, 8, 8)))
    for p in model.parameters():
        nn.init.uniform_(p, -1 / math.sqrt(p.shape[-1]), 1 / math.sqrt(p.shape[-1]), generator=random)

    def mean_loss() -> Tensor:
        batch = x[torch.randint(len(x), (BATCH,), generator=random)]
        return loss(model(degrade(batch, random)), batch).mean()

    minimise(model, mean_loss, STEPS, Adam(RATE), Linear())
    return model


@torch.no_grad()
def measure(seed: int, budget: float) -> dict[str, Any]:
    """Sharpness, PSNR and absolute error for each loss."""
    data = load_digits_split()
    x, repeats = data.test.x, max(3, round(PRICE * budget))
    found: dict[str, list[float]] = {f"{what}_{name}": [] for what in ("sharpness", "psnr", "mae") for name in LOSSES}
    images = {"true": x[:SHOWN, 0].tolist()}
    for repeat in range(repeats):
        for name, loss in LOSSES.items():
            with torch.enable_grad():
                model = train_restorer(loss, data.train.x, seed * 1000 + repeat)
            seen = degrade(x, torch.Generator().manual_seed(seed))
            yhat = model(seen)
            found[f"sharpness_{name}"].append(float(sharpness(yhat).mean() / sharpness(x).mean()))
            found[f"psnr_{name}"].append(float(psnr(yhat, x).mean()))
            found[f"mae_{name}"].append(float(absolute_error(yhat, x).mean()))
            images |= {"seen": seen[:SHOWN, 0].tolist(), name: yhat[:SHOWN, 0].tolist()}
    sharper = torch.tensor(found["sharpness_l1"]) - torch.tensor(found["sharpness_l2"])
    return {
        "training": list(range(repeats)),
        **found,
        "sharper": float(sharper.mean()),
        "images": images,
        "errors": {"sharper": float(sharper.std()) / math.sqrt(repeats)},
    }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    return {"sharper": numbers["sharper"] / numbers["errors"]["sharper"]}


def figure(numbers: dict[str, Any]) -> Figure:
    """What was seen, both restorations and the truth, for a few images."""
    from matplotlib.figure import Figure

    rows = {"seen": "seen", "L2": "l2", "L1": "l1", "true": "true"}
    fig = Figure(figsize=(SHOWN * 1.1, len(rows) * 1.1), layout="constrained")
    grid = fig.subplots(len(rows), SHOWN)
    for axes, (title, name) in zip(grid, rows.items(), strict=True):
        for one, pixels in zip(axes, numbers["images"][name], strict=True):
            one.imshow(pixels, cmap="gray", vmin=0, vmax=1)
            one.set_xticks([])
            one.set_yticks([])
        axes[0].set_ylabel(title)
    return fig
