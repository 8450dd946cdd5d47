"""Learning in context: a mapping that no training text had is learned from the examples in the prompt, and only there.

    a mapping      a permutation f of 8 letters onto 8 digits, one of 40,320
    a text         pairs x f(x) of one mapping, letters drawn with repetition; the loss is on the digits
    held out       4,000 mappings that are never trained on
    k shots        k different letters with their digits, then a letter of the eight: which digit?

Who reads perfectly is right when the letter is among the shots, and else guesses one of the digits that are left:

    accuracy(k) = k/8 + (8 − k)/8 · 1/(8 − k) = (k + 1)/8,   k < 8;   1 for k = 8

So accuracy has to rise with k by an eighth for each example, although no weight changes.

DLN, MF 19.2, S940 5.6 and VOM 14.5 state the rise without numbers. Chosen on seed 10: sizes and rate.

Systems: in-context-learning
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from descend.engine.frozen import checksum
from descend.labs._evidence import AtLeast, AtMost
from descend.labs._relative_reader import RelativeReader
from descend.labs._train import train

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-B.68", "MF-B.43", "S940-DLD.88", "VOM-B.74")
PRINTED = "Accuracy rises with the number of examples in the prompt, without any update of weights (no figures)."
CLAIM = (
    "A small transformer that was trained on many mappings is the more accurate on mappings it never saw the more"
    " examples of them stand in its prompt, and comes near what a perfect reader could say; its weights do not change."
)
PREDICTIONS = (
    AtLeast("gain", 0.6, "Accuracy with 8 shots less that with none; a perfect reader gains 7/8."),
    AtLeast("step", 0.05, "The least gain of two more shots, from 0 to 8; a perfect reader gains 1/4 or more."),
    AtMost("distance", 0.1, "The largest distance from the accuracy of a perfect reader, over k."),
)
CONTROLS = (
    AtMost("untrained", 0.1, "The same gain before training: the prompt alone does nothing."),
    AtMost("changed", 0, "1 if the checksum of the weights is another one after all prompts."),
)
SCOPE = "Two layers on mappings of 8 symbols; copying from the prompt is enough, no rule has to be found."
RETUNED = "First with 840 steps, in which seed 0 was still learning (accuracy 0.53 with 8 shots): 1,820 since."
SYMBOLS, PAIRS, HELD_OUT, ASKED = 8, 14, 4000, 1000
WIDTH, DEPTH, HEADS, NEAR, BATCH, RATE = 48, 2, 2, 4, 64, 4e-3
BUDGET = 26.0
PRICE = 70  # steps that a second of one core buys, the rest included
LEAST = 1500  # steps below which nothing is said


def list_mappings() -> tuple[Tensor, Tensor]:
    """All permutations (n, 8) in a fixed random order: those to train on, and those held out."""
    rows = torch.tensor([[0]])
    for n in range(1, SYMBOLS):  # n goes into each of the n + 1 places
        rows = torch.cat(
            [torch.cat([rows[:, :k], torch.full_like(rows[:, :1], n), rows[:, k:]], 1) for k in range(n + 1)]
        )
    rows = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))]
    return rows[HELD_OUT:], rows[:HELD_OUT]


def write_text(mapping: Tensor, letters: Tensor) -> Tensor:
    """x f(x) x f(x) .. (b, 2n) of letters (b, n): letters are 0..7, digits 8..15."""
    return torch.stack([letters, SYMBOLS + mapping.gather(1, letters)], dim=2).flatten(1)


def prompts(mapping: Tensor, k: int, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Prompts (b, 2k + 1) of k shots and a letter, and its digit (b)."""
    shots = torch.rand(len(mapping), SYMBOLS, generator=random).argsort(1)[:, :k]
    asked = torch.randint(SYMBOLS, (len(mapping), 1), generator=random)
    return torch.cat([write_text(mapping, shots), asked], 1), SYMBOLS + mapping.gather(1, asked)[:, 0]


@torch.no_grad()
def curve(model: RelativeReader, mappings: Tensor, seed: int) -> list[float]:
    """Accuracy with 0, 1, .., 8 shots."""
    random = torch.Generator().manual_seed(seed)
    found = []
    for k in range(SYMBOLS + 1):
        chosen = mappings[torch.randint(len(mappings), (ASKED,), generator=random)]
        text, digit = prompts(chosen, k, random)
        found.append(float((model(text)[:, -1].argmax(-1) == digit).double().mean()))
    return found


def perfect(k: int) -> float:
    """The accuracy of who reads perfectly."""
    return (k + 1) / SYMBOLS if k < SYMBOLS else 1.0


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Accuracy on held-out mappings over the shots, before and after training."""
    steps = max(4, round(PRICE * budget))
    known, unseen = list_mappings()
    torch.manual_seed(seed)
    model = RelativeReader(2 * SYMBOLS, WIDTH, DEPTH, HEADS, NEAR)
    random = torch.Generator().manual_seed(seed)
    untrained = curve(model, unseen, 100 + seed)

    def loss() -> Tensor:
        mapping = known[torch.randint(len(known), (BATCH,), generator=random)]
        text = write_text(mapping, torch.randint(SYMBOLS, (BATCH, PAIRS), generator=random))
        return cross_entropy(model(text[:, :-1])[:, ::2].flatten(0, 1), text[:, 1::2].flatten())

    train(model, loss, steps, RATE)
    before = checksum(model)
    trained = curve(model, unseen, 200 + seed)
    shots = list(range(SYMBOLS + 1))
    return {
        "shots": shots,
        "untrained": untrained,
        "trained": trained,
        "perfect": [perfect(k) for k in shots],
        "changed": int(checksum(model) != before),
        "steps": steps,
    }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    found, best, untrained = numbers["trained"], numbers["perfect"], numbers["untrained"]
    return {
        "gain": found[-1] - found[0],
        "step": min(found[k + 2] - found[k] for k in range(0, SYMBOLS, 2)),
        "distance": max(abs(a - b) for a, b in zip(found, best, strict=True)),
        "untrained": untrained[-1] - untrained[0],
        "changed": float(numbers["changed"]),
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Accuracy over the shots."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6.5, 4.0), layout="constrained")
    axes = fig.subplots()
    axes.plot(numbers["shots"], numbers["perfect"], color="0.6", ls="--", label="a perfect reader, (k + 1)/8")
    axes.plot(numbers["shots"], numbers["trained"], "o-", color="#2b6cd8", label="trained on other mappings")
    axes.plot(numbers["shots"], numbers["untrained"], "o-", color="#d66820", label="before training")
    axes.set_xlabel("examples in the prompt")
    axes.set_ylim(0, 1.05)
    axes.set_title("accuracy on mappings never trained on", fontsize=11, loc="left", fontweight="bold")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
