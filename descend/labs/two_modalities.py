"""Two modalities, two exponents: what mixture of tokens is best?

    text      a bigram model of letters, counted, on the Python documentation            loss L_t(D_t) in nats a letter
    images    ridge regression to handwritten digits; an image is 64 tokens              loss L_i(D_i), Σ squared errors
    laws      L_m = E_m + (scale_m / D_m)^α_m, fitted to a sweep of D                    `fit_modalities`
    mix       min w_t L_t + w_i L_i under D_t + D_i = D: by the laws, and measured on a grid of shares

VOM 14.8.3 says in words that modalities have exponents of their own and that the mix must be chosen.

Systems: multimodal-scaling
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from descend.labs._digit_classes import read_digits
from descend.labs._evidence import AtLeast, AtMost
from descend.labs._log_lines import Curve, Panel, draw_panels
from descend.theory.modality_mix import fit_modalities, mix

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("VOM-B.145",)
PRINTED = "Every modality scales with an exponent of its own; the mix has to be chosen for the goal."
CLAIM = (
    "Text and images have laws of their own, and the mixture that they foretell is nearly as good as the best measured."
)
PREDICTIONS = (
    AtLeast("difference of the exponents", 0.1, "|α_text − α_images|; equal exponents would refute it"),
    AtMost("loss of the foretold mix over the best", 1.03, "within 3% of the best share of a grid"),
    AtLeast("loss of equal shares over the foretold", 1.0, "the foretold mix is no worse than half and half"),
)
SCOPE = "two separate learners and not one model of both; 1,000 to 80,000 tokens"
BUDGET = 1.0
PRICE = 12  # draws of the data that a second buys
TOKENS, TOTAL, IMAGE = (1000, 2000, 4000, 8000, 16000, 32000, 64000), 30000, 64
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
WEIGHTS = {"text": 1.0, "images": 1.0}
LETTERS = " abcdefghijklmnopqrstuvwxyz"
LEAST, RIDGE = 6, 1.0

Array = NDArray[np.float64]


@cache
def read_letters() -> NDArray[np.int64]:
    """The documentation as numbers of 27 characters."""
    from pydoc_data.topics import topics

    text = "".join(c if c in LETTERS else " " for c in " ".join(topics[key] for key in sorted(topics)).lower())
    return np.array([LETTERS.index(c) for c in " ".join(text.split())])


def text_loss(tokens: int, random: np.random.Generator) -> float:
    """Of a bigram model with half a count for what was not seen, on the last fifth of the text."""
    letters = read_letters()
    cut = int(0.8 * len(letters))
    # pieces of 50 letters from everywhere, so that the topic matters less
    starts = random.integers(cut - 51, size=max(1, tokens // 50))
    rows = letters[starts[:, None] + np.arange(51)]
    counts = np.full((len(LETTERS), len(LETTERS)), 0.5)
    np.add.at(counts, (rows[:, :-1].ravel(), rows[:, 1:].ravel()), 1)
    p = counts / counts.sum(1, keepdims=True)
    held = letters[cut:]
    return float(-np.log(p[held[:-1], held[1:]]).mean())


def image_loss(tokens: int, random: np.random.Generator) -> float:
    """Of a linear function to ten digits, fitted to so many images, on held-out ones."""
    x, y, x_new, y_new = read_images()
    rows = random.integers(len(x), size=max(10, tokens // IMAGE))
    given = x[rows]
    w = np.linalg.solve(given.T @ given + RIDGE * np.eye(x.shape[1]), given.T @ y[rows])
    return float(((x_new @ w - y_new) ** 2).sum(1).mean())


@cache
def read_images() -> tuple[Array, Array, Array, Array]:
    """Pixels with a constant, and the digits as unit vectors: training and held-out ones."""
    found: list[Array] = []
    for part in read_digits():
        pixels = part.x.flatten(1).double().numpy()
        found += [np.concatenate([pixels, np.ones((len(pixels), 1))], 1), np.eye(10)[part.y.numpy()]]
    x, y, x_new, y_new = found
    return x, y, x_new, y_new


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Losses by tokens, and of every mix of a grid; means over draws."""
    draws = max(1, round(PRICE * budget))
    random = np.random.default_rng(seed)
    mean = lambda loss, tokens: float(np.mean([loss(tokens, random) for _ in range(draws)]))
    text, images = ([mean(loss, d) for d in TOKENS] for loss in (text_loss, image_loss))
    pairs = {"text": list(zip(TOKENS, text, strict=True)), "images": list(zip(TOKENS, images, strict=True))}
    fits = fit_modalities(pairs, ("text", "images"))
    laws = {name: fit.law for name, fit in fits.items()}
    share = mix(laws, WEIGHTS, TOTAL)["text"] / TOTAL
    weigh = lambda s: mean(text_loss, round(s * TOTAL)) + mean(image_loss, round((1 - s) * TOTAL))
    measured = [weigh(s) for s in SHARES]
    return {
        "tokens": list(TOKENS),
        "text": text,
        "images": images,
        "share_of_text": list(SHARES),
        "weighted_loss": measured,
        "alpha_text": laws["text"].alpha,
        "alpha_images": laws["images"].alpha,
        "floor_text": laws["text"].floor,
        "floor_images": laws["images"].floor,
        "foretold_share": share,
        "foretold_loss": weigh(min(0.97, max(0.03, share))),
        "draws": draws,
    }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    found = numbers["foretold_loss"]
    return {
        "difference of the exponents": abs(numbers["alpha_text"] - numbers["alpha_images"]),
        "loss of the foretold mix over the best": found / min(numbers["weighted_loss"]),
        "loss of equal shares over the foretold": numbers["weighted_loss"][SHARES.index(0.5)] / found,
    }


def needs(numbers: dict[str, Any]) -> float:
    return 0.0 if numbers["draws"] >= LEAST else LEAST / PRICE


def figure(numbers: dict[str, Any]) -> Figure:
    """Both sweeps, and the weighted loss over the share of text."""
    both = [Curve(name, numbers["tokens"], numbers[name]) for name in ("text", "images")]
    grid = [
        Curve("measured", numbers["share_of_text"], numbers["weighted_loss"]),
        Curve("foretold", [numbers["foretold_share"]], [numbers["foretold_loss"]]),
    ]
    return draw_panels(
        [Panel("loss", "tokens", "nats", both), Panel("mixtures", "share of text", "nats", grid, "linear")]
    )
