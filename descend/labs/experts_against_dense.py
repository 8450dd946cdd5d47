"""A mixture of experts against a dense model of its active size: does it read better for the same arithmetic?

    Mixtral      8 experts of hidden width h, a token passes through 2      learns with α times the balancing loss
    Mistral      one feed-forward part of hidden width 2 h + 3              what a token meets is never less than above

Everything else is the same: width, layers, attention, the windows of the Python documentation and their order, held-out
windows. A token meets as many numbers in both, but Mixtral has more than twice as many in all. MF 40.8 gives the
comparison at its full size: 13 billion active, the quality of a dense model of 70 billion.

Systems: mixtral
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from descend.data.text.plain import Text, Windows
from descend.labs._evidence import Above, AtMost
from descend.labs._train import train
from descend.losses.language import token_losses
from descend.models.mistral import Mistral, MistralConfig
from descend.models.mixtral import Mixtral, MixtralConfig
from descend.nn.experts import total_and_active
from descend.tasks.language import BalancedLanguage

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("MF-B.135", "DLN-B.83")
PRINTED = "At the cost of a dense model of 13 billion, Mixtral has the quality of one of 70 billion."
CLAIM = "At equal active size, with the same text and steps, a mixture of experts has a lower loss than a dense model."
PREDICTIONS = (
    Above(
        "gain",
        3,
        "Loss of the dense model less Mixtral's on the same held-out windows, in standard errors of the difference;"
        " a loss of 3 refutes it.",
        refuted=-3,
    ),
)
CONTROLS = (AtMost("active size", 1.0, "What a token meets in Mixtral as a share of the dense model."),)
SCOPE = (
    "Models in which a token meets 67,000 numbers, 420 steps on the Python documentation; sizes and rate are those"
    " first tried, on seed 10."
)
CONTEXT, BATCH, RATE, WIDTH, DEPTH, HEADS, KV_HEADS = 48, 16, 6e-3, 48, 2, 4, 2
EXPERTS, ACTIVE, HIDDEN, ALPHA, VOCAB = 8, 2, 48, 0.02, 512
TESTED = 400  # held-out windows
BUDGET = 15.0
PRICE = 28  # steps of both that a second of one core buys
LEAST = 300  # steps below which nothing is said


def build(kind: str, vocab: int) -> Mistral:
    """A model of this kind; weights N(0, 1/n): the released N(0, 0.02²) is for wide models."""
    sizes: Any = {"context": CONTEXT, "width": WIDTH, "depth": DEPTH, "heads": HEADS, "kv_heads": KV_HEADS}
    sizes |= {"window": None, "tied": True}
    if kind == "Mixtral":
        model: Mistral = Mixtral(MixtralConfig(vocab, hidden=HIDDEN, experts=EXPERTS, active=ACTIVE, **sizes))
    else:
        more = -(-EXPERTS // 3)  # a router has 8 d numbers, a hidden unit 3 d
        model = Mistral(MistralConfig(vocab, hidden=ACTIVE * HIDDEN + more, **sizes))
    for name, p in model.named_parameters():
        if p.dim() > 1 and name != "embed.weight":
            nn.init.normal_(p, std=p.shape[-1] ** -0.5)
    return model


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Held-out loss, sizes, and the use of the experts."""
    steps = max(2, round(PRICE * budget))
    corpus = Text(vocab=VOCAB).open(CONTEXT)
    held_out = corpus.valid[: TESTED * (CONTEXT + 1)].long().unflatten(0, (-1, CONTEXT + 1))
    columns: dict[str, list[Any]] = {"model": ["Mistral", "Mixtral"], "loss": [], "total": [], "active": []}
    losses = []
    for kind in columns["model"]:
        torch.manual_seed(seed)
        model = build(kind, corpus.tokenizer.vocab)
        learn(model, Windows(corpus.train, CONTEXT, BATCH, seed), steps)
        with torch.no_grad():
            losses.append(token_losses(model(held_out[:, :-1]), held_out[:, 1:]).mean(1).double())
        total, active = total_and_active(model, ACTIVE)
        columns["loss"].append(float(losses[-1].mean()))
        columns["total"].append(total)
        columns["active"].append(active)
    gain = losses[0] - losses[1]
    errors = {"gain": float(gain.std() / len(gain) ** 0.5)}
    return {**columns, "gain": float(gain.mean()), "errors": errors, "steps": steps, "windows": len(held_out)}


def learn(model: Mistral, stream: Windows, steps: int) -> None:
    """Language modelling, with the balancing loss where there are experts."""
    task = BalancedLanguage(model, ALPHA)

    def loss() -> Tensor:
        batch = next(stream)
        if isinstance(model, Mixtral):
            return task.compare(task.encode(batch)).total()
        return token_losses(model(batch["x"]), batch["y"]).mean()

    train(model, loss, steps, RATE)


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    dense, sparse = numbers["active"]
    return {"gain": numbers["gain"] / numbers["errors"]["gain"], "active size": sparse / dense}


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """The loss over the active size, with the whole size beside it."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6, 3.8), layout="constrained")
    axes = fig.subplots()
    for name, loss, total, active, colour in zip(
        *(numbers[key] for key in ("model", "loss", "total", "active")), ("#2b6cd8", "#d66820"), strict=True
    ):
        axes.plot([active, total], [loss, loss], "o-", color=colour, label=name)
    axes.set_xscale("log")
    axes.set_xlabel("numbers that a token meets, and numbers in all")
    axes.set_title("held-out loss, nats per token", fontsize=11, loc="left", fontweight="bold")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
