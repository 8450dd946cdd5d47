"""A frozen encoder as feature extractor: which layers to take, and what is lost against fine-tuning?

    embeddings | second-to-last | last | weighted sum of the last four | their concatenation | weighted sum of all
    on each, a new two-layer BiLSTM learns to tag names from a few texts; beside them all of the encoder is fine-tuned

One encoder, pre-trained by masked language modelling on texts without tags; few tagged texts, in which many a name
never occurs, drawn several times. F1 of whole names on new texts. On CoNLL-2003 with BERT base (DLN) the embeddings
reach 91.0, the layers 94.9 to 96.1, fine-tuning 96.4.

Systems: bert-feature-extraction
"""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Any

from descend.data.text.masking import Masking
from descend.labs._evidence import AtLeast
from descend.labs._named_things import draw_texts, fill_gaps, on_features, on_top, score, teach
from descend.nn.layer_mix import STRATEGIES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-B.62",)
PRINTED = (
    "Embeddings 91.0, second-to-last 95.6, last 94.9, weighted sums 95.9 and 95.5, concatenation 96.1; tuned 96.4."
)
CLAIM = (
    "Taggers on the layers of a frozen encoder are better than on its embeddings, and the best of them is at most 0.01"
    " of F1 below fine-tuning all of it."
)
PREDICTIONS = (
    AtLeast("layers", 0.01, "F1 of the best strategy that takes layers above the embeddings, less that of embeddings"),
    AtLeast("against fine-tuning", -0.01, "F1 of the best of the six strategies less that of fine-tuning"),
)
CONTROLS = (AtLeast("pre-training", 0.05, "F1 of fine-tuning less that of the same network from random weights"),)
SCOPE = (
    "An encoder of width 32 and depth 4, a made-up language of 127 words, 10 tagged texts; sizes, rates and thresholds"
    " were chosen on seeds 10 and 11. With so few texts fine-tuning learns them by heart; with 60 it comes nearer."
)
TEXTS, TESTED, LABELLED, DRAWS, TAUGHT = 8000, 500, 10, 3, 150
RATES = {"features": 5e-3, "fine-tuning": 1e-3}
BUDGET = 40.0
PRICE = 25  # steps of pre-training that a second of one core buys, taggers included
LEAST = 800  # steps below which nothing is said
TUNED = ("fine-tuned", "from scratch")


def measure(seed: int, budget: float) -> dict[str, Any]:
    """F1 of every strategy, of fine-tuning and of a network that was not pre-trained: means over the draws."""
    steps = max(2, round(PRICE * budget))
    encoder = fill_gaps(draw_texts(TEXTS, 10 * seed)[0], Masking(), steps, seed)
    new = draw_texts(TESTED, 10 * seed + 1)
    found: dict[str, list[float]] = {name: [] for name in (*STRATEGIES, *TUNED)}
    for draw in range(DRAWS):
        known = draw_texts(LABELLED, 10 * seed + 2 + draw)
        for name, scores in found.items():
            start = None if name == "from scratch" else encoder
            tagger = on_top(start, seed) if name in TUNED else on_features(encoder, name, seed)
            rate = RATES["fine-tuning" if name in TUNED else "features"]
            teach(tagger, *known, min(TAUGHT, steps), rate, seed + draw)
            scores.append(score(tagger.eval(), *new))
    means = [fmean(scores) for scores in found.values()]
    return {"strategy": list(found), "f1": means, "draws": found, "steps": steps, "labelled": LABELLED}


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    f1 = dict(zip(numbers["strategy"], numbers["f1"], strict=True))
    layers = max(f1[name] for name in STRATEGIES if name != "embeddings")
    return {
        "layers": layers - f1["embeddings"],
        "against fine-tuning": max(layers, f1["embeddings"]) - f1["fine-tuned"],
        "pre-training": f1["fine-tuned"] - f1["from scratch"],
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """A bar for each strategy, and for the networks that learn as a whole."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(7, 3.8), layout="constrained")
    axes = fig.subplots()
    places = range(len(numbers["strategy"]))
    axes.barh(places, numbers["f1"], color=["#d66820" if name in TUNED else "#2b6cd8" for name in numbers["strategy"]])
    axes.set_yticks(places, numbers["strategy"])
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_title(f"F1 of names after {numbers['labelled']} tagged texts", fontsize=11, loc="left", fontweight="bold")
    axes.spines[["top", "right"]].set_visible(False)
    return fig
