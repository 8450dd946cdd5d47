"""One word, two senses: a table gives "bank" one vector, attention gives it the vector of its sense.

    static        E[bank]: the same row in "the river bank" and "the loan bank", difference exactly 0
    contextual    the vector at "bank" after the blocks of a small GPT-2, trained on sentences of both senses
    probe         the sense of a new sentence, by the nearer of the two class means of the vectors at "bank"
    own sense     the cosine of the vector with the mean vector of its own sense's words, less that with the other's

Systems: static-versus-contextual
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.data.toys.toy_language import AMBIGUOUS, SENSE_WORDS, two_senses
from descend.engine.minimise import minimise
from descend.labs._evidence import Above, AtLeast, AtMost
from descend.losses.language import causal_lm_loss
from descend.models.gpt2 import GPT2, GPT2Config
from descend.ops.math.vectors import unit
from descend.optim.rules import Adam

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("VOM-A.79", "S940-DLD.201")
PRINTED = 'Lookup vectors are static, one for "bank"; after attention layers the vector depends on the neighbours.'
CLAIM = (
    "A lookup gives an ambiguous word one vector in every sentence; after attention its vector depends on the"
    " sentence, reveals the sense, and lies nearer to the words of that sense."
)
PREDICTIONS = (
    AtMost("static difference", 0, "Of the looked-up vectors in two sentences: exactly 0."),
    Above("contextual difference", 0, "Of the vectors after the blocks."),
    Above("own sense", 0, "Cosine with the words of its own sense less that with the other's."),
)
CONTROLS = (AtLeast("probe", 0.9, "How well the sense is read: below it more training may help."),)
SCOPE = "Generated sentences of six words, a GPT-2 of width 32."
MODEL = GPT2Config(vocab=len(SENSE_WORDS), context=6, width=32, depth=2, heads=4, dropout=0.0)
BATCH, RATE = 64, 3e-3
BUDGET = 6.0
PRICE = 100  # steps that a second of one core buys
PLACE = 2  # of the ambiguous word in a sentence
HELD = 200  # sentences of each measurement


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Differences, probes and nearness, before and after training."""
    steps = max(100, round(PRICE * budget))
    random = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = GPT2(MODEL)
    before = look(model, random)

    def loss() -> Tensor:
        x, _ = two_senses(BATCH, random)
        return causal_lm_loss(model(x[:, :-1]), x[:, 1:])

    minimise(model, loss, steps, Adam(RATE))
    return {"steps": steps, "before": before, "after": look(model, random)}


@torch.no_grad()
def look(model: GPT2, random: torch.Generator) -> dict[str, Any]:
    """The figures of a model, on sentences that it was not trained on."""
    (x, sense), (new, truth) = two_senses(HELD, random), two_senses(HELD, random)
    static, h = model.wte(new)[:, PLACE], encode(model, new)
    learned = encode(model, x)
    own = torch.stack([learned[sense == k, PLACE + 1 : -1].mean((0, 1)) for k in (0, 1)])  # the sense's words
    near = unit(h[:, PLACE]) @ unit(own).mT
    mine, other = near.gather(1, truth[:, None]), near.gather(1, 1 - truth[:, None])
    return {
        "static_difference": float((static[truth == 0][0] - static[truth == 1][0]).norm()),
        "contextual_difference": float((h[truth == 0, PLACE].mean(0) - h[truth == 1, PLACE].mean(0)).norm()),
        "cosine": float(unit(h[truth == 0][0, PLACE]) @ unit(h[truth == 1][0, PLACE])),
        "static_probe": probe(static, truth, model.wte(x)[:, PLACE], sense),
        "probe": probe(h[:, PLACE], truth, learned[:, PLACE], sense),
        "own_sense": float((mine - other).mean()),
        "at": h[:, PLACE].tolist(),
        "sense": truth.tolist(),
    }


def probe(new: Tensor, truth: Tensor, seen: Tensor, sense: Tensor) -> float:
    """Share of new vectors nearer to the mean of their own sense; half when both are equally near."""
    means = torch.stack([seen[sense == k].mean(0) for k in (0, 1)])
    d = torch.cdist(new, means)
    mine, other = (d.gather(1, k[:, None]).squeeze(1) for k in (truth, 1 - truth))
    tied = (mine - other).abs() < 1e-4
    return float(torch.where(tied, 0.5, (mine < other).double()).mean())


def encode(model: GPT2, tokens: Tensor) -> Tensor:
    """The vectors (b, t, d) after the last block."""
    x = model.embed(tokens, torch.arange(tokens.shape[1]))
    for block in model.h:
        x = block(x)
    return model.ln_f(x)


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    after = numbers["after"]
    return {
        "static difference": after["static_difference"],
        "contextual difference": after["contextual_difference"],
        "own sense": after["own_sense"],
        "probe": after["probe"],
    }


def figure(numbers: dict[str, Any]) -> Figure:
    """The vectors of the ambiguous word, by two principal components, before and after training."""
    from matplotlib.figure import Figure

    from descend.metrics.geometry import flat_map

    fig = Figure(figsize=(10, 4.2), layout="constrained")
    for axes, name in zip(fig.subplots(1, 2), ("before", "after"), strict=True):
        at, sense = flat_map(torch.tensor(numbers[name]["at"])), torch.tensor(numbers[name]["sense"])
        for k, colour in enumerate(("#2b6cd8", "#d66820")):
            axes.plot(*at[sense == k].T, "o", ms=4, alpha=0.6, color=colour, label=("water", "money")[k])
        axes.set_title(f"{AMBIGUOUS!r} {name} training, probe {numbers[name]['probe']:.0%}", fontsize=11, loc="left")
        axes.legend(frameon=False, fontsize=9)
    return fig
