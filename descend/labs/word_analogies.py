"""Vectors learned from which words stand together carry meaning: near words are alike, differences answer questions.

    corpus      sentences of a noun, a word of each of its features (royal or common, male or female, adult or young)
                and fillers: `data.planted`; no word says that a queen is a royal woman
    vectors     skip-gram, the exact sum over all pairs: max Σ_{c,o} X_co log P(o | c)
    measured    analogies a : b = c : ? over the nouns, the answer sought among all words; cosines within and between
                royal and common nouns; the share of nouns on the right side of the gender direction, which is learned
                from the other pairs; mean cosine of all words, as learned and centred

Systems: embedding-analogies, embedding-geometry, skip-gram
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.data.text.contexts import cooccurrence, one_each
from descend.data.toys.toy_language import NOUNS, WORDS, nouns_and_features, quadruples
from descend.engine.minimise import minimise
from descend.labs._evidence import Above, AtLeast
from descend.metrics.geometry import anisotropy, center_rows, class_contrast, flat_map, mean_direction, projection
from descend.metrics.word_vectors import analogy_accuracy
from descend.models.word_vectors import SkipGram, WordVectorsConfig
from descend.optim.rules import Adam

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-B.5", "VOM-A.70", "VOM-A.71", "VOM-A.80")
PRINTED = (
    "v(king) − v(man) + v(woman) ≈ v(queen); words in similar contexts get similar vectors; directions are concepts."
)
CLAIM = (
    "Vectors that predict a word's neighbours place words of similar use near each other, and their differences are"
    " directions of meaning: king − man + woman is nearest to queen."
)
PREDICTIONS = (
    Above("analogies", 10, "Accuracy over chance, the worst corpus."),
    Above(
        "within over between",
        0,
        "Mean cosine within classes less that between them, the worst corpus.",
    ),
    AtLeast("gender", 0.75, "The share of nouns on the right side of the gender direction."),
)
SCOPE = "A planted corpus of 4,000 sentences, vectors of 8 numbers; natural corpora are out of reach here."
SENTENCES, WIDTH, STEPS, RATE = 4000, 8, 300, 0.05
BUDGET = 3.0
PRICE = 5  # corpora that a second of one core buys
MALE, FEMALE = (torch.tensor([n for n, f in enumerate(NOUNS.values()) if f[1] == g]) for g in ("male", "female"))
ROYAL = torch.tensor([int(f[0] == "royal") for f in NOUNS.values()])


def measure(seed: int, budget: float) -> dict[str, Any]:
    """The figures of each corpus, and the map of the last one."""
    columns: dict[str, list[float]] = {}
    e = torch.empty(0)
    for run in range(max(2, round(PRICE * budget))):
        e = learn(1000 * seed + run)
        within, between = class_contrast(e[: len(NOUNS)], ROYAL)
        row = {
            "accuracy": analogy_accuracy(e, quadruples()),
            "within": float(within),
            "between": float(between),
            "right_gender": right_gender(e),
            "anisotropy": float(anisotropy(e)),
            "centred_anisotropy": float(anisotropy(center_rows(e))),
        }
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    return {**columns, "chance": 1 / (len(WORDS) - 3), "words": WORDS, "map": flat_map(e).tolist()}


def learn(seed: int) -> Tensor:
    """Skip-gram vectors (v, d) of one corpus."""
    corpus = nouns_and_features(SENTENCES, torch.Generator().manual_seed(seed))
    x = cooccurrence(corpus.words, 5, len(WORDS), corpus.sentence, one_each).table()
    x = x / x.sum()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = SkipGram(WordVectorsConfig(len(WORDS), WIDTH))
    everyone = torch.arange(len(WORDS))
    minimise(model, lambda: -(x * model(everyone).log_softmax(dim=-1)).sum(), STEPS, Adam(RATE))
    return model.vectors()


def right_gender(e: Tensor) -> float:
    """Share of nouns whose projection on male -> female, a direction learned without their pair, tells their gender."""
    right = 0
    for k in range(len(MALE)):
        rest = [j for j in range(len(MALE)) if j != k]
        direction = mean_direction(e[MALE[rest]], e[FEMALE[rest]])
        middle = projection(torch.cat([e[MALE[rest]], e[FEMALE[rest]]]), direction).mean()
        right += int(projection(e[MALE[k]], direction) < middle) + int(projection(e[FEMALE[k]], direction) > middle)
    return right / (2 * len(MALE))


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    pairs = zip(numbers["within"], numbers["between"], strict=True)
    return {
        "analogies": min(numbers["accuracy"]) / numbers["chance"],
        "within over between": min(within - between for within, between in pairs),
        "gender": sum(numbers["right_gender"]) / len(numbers["accuracy"]),
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if len(numbers["accuracy"]) < 2 else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Left the figures of each corpus, right the words of the last one."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(11, 4.6), layout="constrained")
    left, right = fig.subplots(1, 2, width_ratios=(1, 1.4))
    for place, name in enumerate(("accuracy", "right_gender", "within", "between")):
        left.plot([place] * len(numbers[name]), numbers[name], "o", color="#2b6cd8", alpha=0.6)
    left.axhline(numbers["chance"], color="0.6", ls=":", label="analogies by chance")
    left.set_xticks(range(4), ["analogies\nanswered", "gender\ntold", "cosine\nwithin", "cosine\nbetween"])
    left.legend(frameon=False, fontsize=9)
    for n, (word, (x, y)) in enumerate(zip(numbers["words"], numbers["map"], strict=True)):
        right.text(x, y, word, fontsize=9, color="#d66820" if n < len(NOUNS) else "0.45", ha="center")
    right.plot(*zip(*numbers["map"], strict=True), ",", color="0.8")
    right.set_title("words of the last corpus, two principal components", fontsize=11, loc="left")
    return fig
