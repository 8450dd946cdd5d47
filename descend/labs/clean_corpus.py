"""A filtered corpus: trained for the same number of tokens, is a model better on clean text?

    clean         paragraphs of the Python documentation; every fifth is held out
    raw           the others, and beside them what crawled pages have (more than half of the documents):
                    copies        of one long paragraph in four, ten times each, in capitals or wider spaced
                    near copies   of the same, ten times each, with another last word
                    noise         lines of numbers and signs, and menus that repeat themselves
    filtered      what `descend prepare` leaves of the raw text with its default rules
    report        the loss of a token of the paragraphs held out, after the same number of steps on either

VOM 14.8: "10x smaller but 10x higher quality might train a better model", without a measurement. Chosen on seed 10: how
much there is of each.

Systems: corpus-preparation
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.data.text.plain import Passages, Windows, python_documentation
from descend.data.text.preparation import Document, Preparation, Wishes, split_paragraphs
from descend.engine.evaluation import score_set
from descend.labs._evidence import AtLeast
from descend.labs._train import train
from descend.losses.language import causal_lm_loss
from descend.models.llama import Llama, LlamaConfig
from descend.tasks.language import Language
from descend.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("VOM-B.75", "DLN-B.67", "MF-B.105")
PRINTED = "Data of ten times the quality may train a better model with a tenth of the size (no measurement)."
CLAIM = (
    "Of two models that are trained for the same number of tokens, the one on the filtered corpus has the lower loss on"
    " clean text; the filter leaves nearly all of the clean text and takes nearly all of the rest."
)
PREDICTIONS = (AtLeast("gain", 0.1, "Nats of a token of clean text by which the filtered corpus is better."),)
CONTROLS = (
    AtLeast("taken", 0.95, "Share of the copies and the noise that is left out."),
    AtLeast("left", 0.9, "Share of the clean paragraphs that stay."),
)
SCOPE = "Planted copies and noise, a LLaMA of 0.1 M parameters; real crawls are dirty in more ways."
CONTEXT, VOCAB, BATCH, RATE, COPIES, SHORTEST, LONG, EVERY = 64, 512, 16, 3e-3, 20, 12, 40, 4
BUDGET = 30.0
PRICE = 14  # steps on each corpus that a second of one core buys
LEAST = 250  # steps below which nothing is said


def crawl(paragraphs: list[str], chance: random.Random) -> list[tuple[str, int]]:
    """Texts in a random order, each with the number of the paragraph that it is or copies; noise has none (−1)."""
    found = [(text, i) for i, text in enumerate(paragraphs)]
    for i in range(len(paragraphs)):
        words = paragraphs[i].split()
        for _ in range(COPIES // 2 if len(words) >= LONG and i % EVERY == 0 else 0):
            found.append((paragraphs[i].upper() if chance.random() < 0.5 else "  ".join(words), i))
            found.append((" ".join([*words[:-1], chance.choice(words)]), i))
    for _ in range(len(paragraphs)):
        if chance.random() < 0.5:
            signs = (chance.choice(("|", "--", "::", "0x", "#")) + str(chance.randrange(10**6)) for _ in range(40))
            found.append((" ".join(signs), -1))
        else:
            items = chance.choices(("Home", "Login", "Search", "Next page", "Share"), k=20)
            found.append(("\n".join(items), -1))
    chance.shuffle(found)
    return found


def prepare(raw: list[tuple[str, int]]) -> tuple[list[str], float, float]:
    """What is left, the share of copies and noise that was taken, and of the paragraphs that are left once at least."""
    work = Preparation(Wishes())
    left = [(text, i) for k, (text, i) in enumerate(raw) if work.look(Document(str(k), text, {}))[1] is None]
    paragraphs, kept = {i for _, i in raw if i >= 0}, {i for _, i in left if i >= 0}
    dirty = len(raw) - len(paragraphs)
    return [text for text, _ in left], 1 - (len(left) - len(kept)) / dirty, len(kept) / len(paragraphs)


def teach(texts: list[str], tokenizer: Tokenizer, held_out: Passages, steps: int, seed: int) -> float:
    """The loss on clean text after so many steps."""
    torch.manual_seed(seed)
    model = Llama(LlamaConfig(tokenizer.vocab, CONTEXT, 64, 2, 4, 4, 128, tied=True))
    windows = Windows(torch.tensor(tokenizer.encode("\n\n".join(texts))), CONTEXT, BATCH, seed)

    def loss() -> Tensor:
        batch = next(windows)
        return causal_lm_loss(model(batch["x"]), batch["y"])

    train(model, loss, steps, RATE)
    return score_set(Language(model), held_out)["loss"]


def measure(seed: int, budget: float) -> dict[str, Any]:
    """The loss of clean text from both corpora."""
    steps, chance = max(4, round(PRICE * budget)), random.Random(seed)
    whole = [text for _, text in split_paragraphs(python_documentation()) if len(text.split()) >= SHORTEST]
    work = Preparation(Wishes())
    clean = [text for i, text in enumerate(whole) if work.look(Document(str(i), text, {}))[1] is None]
    held, rest = clean[::5], [text for i, text in enumerate(clean) if i % 5]
    raw = crawl(rest, chance)
    left, taken, stayed = prepare(raw)
    tokenizer = Tokenizer.bpe("\n\n".join(rest), VOCAB)
    held_out = Passages(torch.tensor(tokenizer.encode("\n\n".join(held))), CONTEXT, 32, 128)
    texts = {"raw": [text for text, _ in raw], "filtered": left}
    found = {name: teach(part, tokenizer, held_out, steps, seed) for name, part in texts.items()}
    characters = {name: sum(map(len, part)) for name, part in texts.items()}
    return {"corpus": list(texts), "loss": list(found.values()), "characters": list(characters.values()),
            "taken": taken, "left": stayed, "steps": steps}  # fmt: skip


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    raw, filtered = numbers["loss"]
    return {"gain": raw - filtered, "taken": numbers["taken"], "left": numbers["left"]}


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Bars of the loss and of the sizes."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6.5, 3.4), layout="constrained")
    for axes, name, title in zip(
        fig.subplots(1, 2), ("loss", "characters"), ("loss of clean text", "characters"), strict=True
    ):
        axes.bar(numbers["corpus"], numbers[name], color=["#d66820", "#2b6cd8"], width=0.6)
        axes.set_title(title, fontsize=11, loc="left", fontweight="bold")
        axes.spines[["top", "right"]].set_visible(False)
    return fig
