"""Deep autoencoder, logistic PCA and PCA with the same number of codes: who gives images back best?

    digits of 8 × 8, 4 codes each:   deep 64-128-64-4 and mirrored, logistic PCA, PCA
    error = mean ‖x − x̂‖² of held-out images; cross-entropy of the two whose values are probabilities

The book compares them with 30 codes on digits of 28 × 28 and on faces ("PCA adequate on digits, blurry on faces"), in
figures that are missing; the recipe deep-ae-mnist is that autoencoder. Small digits need fewer codes for a difference.

Systems: linear-autoencoder-is-pca, deep-autoencoder
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.classic.pca import PCA, LogisticPCA
from descend.data.images.digits import load_digits_split
from descend.labs._evidence import Above
from descend.labs._train import train
from descend.losses.reconstruction import half_squared_error, squared_error
from descend.losses.variational import bernoulli_nll
from descend.models.autoencoder import Autoencoder, AutoencoderConfig
from descend.seeds import generator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-A.139",)
PRINTED = (
    "Reconstructions of a deep autoencoder, logistic PCA and PCA at equal latent size: PCA is"
    " adequate on digits, blurry on faces (figures missing)."
)
CLAIM = "With equally many codes a deep autoencoder loses least, then logistic PCA, then PCA."
PREDICTIONS = (
    Above(
        "lead over logistic PCA",
        0,
        "Squared error of logistic PCA less that of the deep autoencoder.",
    ),
    Above("lead over PCA", 0, "Squared error of PCA less that of logistic PCA."),
    Above(
        "lead in cross-entropy",
        0,
        "Cross-entropy of the deep autoencoder's competitor PCA less that of logistic PCA.",
    ),
)
SCOPE = "8×8 digits and 4 codes; the book has 28×28 and 30."
SIDE, CODES, BATCH, RATE, LEAST = 8, 4, 64, 5e-3, 400
BUDGET = 5.0
PRICE = 300  # steps of the deep autoencoder that a second of one core buys, after logistic PCA


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Errors on held-out images, and the first four images of each."""
    steps = max(5, round(PRICE * budget))
    random = generator(seed, 1)
    digits = load_digits_split()
    x, held_out = digits.train.x.float(), digits.valid.x.float()
    torch.manual_seed(seed)
    config = AutoencoderConfig((1, SIDE, SIDE), (128, 64), CODES, output="sigmoid")
    deep = Autoencoder(config)

    def loss() -> Tensor:
        batch = x[torch.randint(len(x), (BATCH,), generator=random)]
        return half_squared_error(batch, deep(batch)).mean()

    train(deep, loss, steps, RATE)
    flat = held_out.flatten(1)
    pca = PCA.fit(x.flatten(1), CODES)
    logistic = LogisticPCA.fit(x.flatten(1), CODES, steps=60)
    with torch.no_grad():
        given = {
            "deep": deep(held_out).flatten(1),
            "logistic PCA": logistic.inverse(logistic.transform(flat, steps=60)),
            "PCA": pca.inverse(pca.transform(flat)),
        }
    safe = {name: y.clamp(1e-4, 1 - 1e-4).logit() for name, y in given.items()}
    return {
        "method": list(given),
        "error": [float(squared_error(flat, y).mean()) for y in given.values()],
        "cross_entropy": [float(bernoulli_nll(flat, y).mean()) for y in safe.values()],
        "codes": CODES,
        "steps": steps,
        "images": [flat[:4].tolist(), *(y[:4].tolist() for y in given.values())],
    }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    deep, logistic, pca = numbers["error"]
    _, ours, theirs = numbers["cross_entropy"]
    return {
        "lead over logistic PCA": logistic - deep,
        "lead over PCA": pca - logistic,
        "lead in cross-entropy": theirs - ours,
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Four held-out images and what each method makes of them."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(5, 5), layout="constrained")
    names = ["image", *(f"{m}: {e:.2f}" for m, e in zip(numbers["method"], numbers["error"], strict=True))]
    for row, images, name in zip(fig.subplots(4, 4), numbers["images"], names, strict=True):
        for axes, image in zip(row, images, strict=True):
            axes.imshow(torch.tensor(image).view(SIDE, SIDE), cmap="gray_r", vmin=0, vmax=1)
            axes.set_axis_off()
        row[0].set_title(name, fontsize=8, loc="left")
    return fig
