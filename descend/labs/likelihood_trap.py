"""The likelihood trap: what a model finds most probable is not what its text is like.

    log p(text) / tokens      the model's own opinion, of held-out text and of what it writes itself
    distinct-n                different n-grams / all n-grams of what is written: near 0 in a loop

A small GPT-2 is trained on the Python documentation for as long as the budget allows, then writes on from held-out
beginnings with each sampler. Greedy and beam search write what the model believes more probable than any real text, and
repeat themselves ("The nice woman The nice woman"); sampling, with top-p or not, keeps the variety of real text.

Systems: likelihood-trap
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.data.text.plain import Text, Windows
from descend.labs._evidence import Above, Below
from descend.labs._train import train
from descend.losses.language import causal_lm_loss, token_losses
from descend.metrics.repetition import distinct, loop_length
from descend.models.gpt2 import GPT2, GPT2Config
from descend.sampling.beam import beam_search
from descend.sampling.filters import GREEDY, TokenSampler
from descend.sampling.generate import generate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-B.77",)
PRINTED = (
    "Greedy and beam text repeats sub-sequences; human text has a lower model probability than beam"
    " output (figure missing)."
)
CLAIM = (
    "Text that a language model writes by greedy or beam search is more probable under it than real text and repeats"
    " itself; text sampled with top-p is neither."
)
PREDICTIONS = (
    Above(
        "trapped",
        0.5,
        "Nats a token by which greedy and beam text is more probable than held-out text, the lesser.",
    ),
    Below(
        "varied when trapped",
        0.5,
        "Its share of distinct 3-grams over that of held-out text, the larger.",
    ),
    Below(
        "top-p more probable",
        0.5,
        "Nats a token by which top-p text is more probable than held-out text.",
    ),
    Above("varied with top-p", 0.75, "Its share of distinct 3-grams over that of held-out text."),
)
SCOPE = "A small GPT-2 on the Python documentation, trained for seconds."
CONTEXT, BATCH, RATE, PROMPT, WRITTEN, TEXTS = 96, 16, 4e-3, 16, 64, 8
SAMPLERS = {
    "greedy": GREEDY,
    "penalty 1.3": TokenSampler(0.0, repetition=1.3),
    "top-k 20": TokenSampler(top_k=20),
    "top-p 0.9": TokenSampler(top_p=0.9),
    "ancestral": TokenSampler(),
}
BUDGET = 8.0
PRICE = 30  # steps that a second of one core buys


def model_and_text(steps: int, seed: int) -> tuple[GPT2, Tensor]:
    """A GPT-2 trained for this many steps, and the held-out tokens."""
    corpus = Text(vocab=512).open(CONTEXT)
    torch.manual_seed(seed)
    model = GPT2(GPT2Config(vocab=corpus.tokenizer.vocab, context=CONTEXT, width=64, depth=2, heads=4, dropout=0.0))
    stream = Windows(corpus.train, CONTEXT, BATCH, seed)

    def loss() -> Tensor:
        batch = next(stream)
        return causal_lm_loss(model(batch["x"]), batch["y"])

    train(model, loss, steps, RATE)
    return model.eval(), corpus.valid


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Mean log p a token and distinct-n of each sampler's text and of held-out text."""
    steps = max(5, round(PRICE * budget))
    model, held_out = model_and_text(steps, seed)
    windows = held_out[: TEXTS * 20 * (PROMPT + WRITTEN)].long().unflatten(0, (-1, PROMPT + WRITTEN))[::20]
    prompts, real = windows[:, :PROMPT].tolist(), windows[:, PROMPT:]
    with torch.inference_mode():
        texts = {"held-out text": real.tolist()}
        texts["beam 4"] = [found[0].tokens for found in beam_search(model.decoder(), prompts, 4, WRITTEN)]
        for name, sampler in SAMPLERS.items():
            texts[name] = generate(model.decoder(), prompts, WRITTEN, sampler, seed)
        log_p = {name: mean_log_p(model, prompts, rows) for name, rows in texts.items()}
    return {
        "text": list(texts),
        "log_p": list(log_p.values()),
        **{f"distinct_{n}": [mean(distinct(row, n) for row in rows) for rows in texts.values()] for n in (1, 3)},
        "in_a_loop": [mean(loop_length(row) > 0 for row in rows) for rows in texts.values()],
        "steps": steps,
    }


def mean(values: Any) -> float:
    """Of numbers as they come."""
    found = [float(value) for value in values]
    return sum(found) / len(found)


def mean_log_p(model: GPT2, prompts: list[list[int]], rows: list[list[int]]) -> float:
    """log p of a written token, given what is before it."""
    whole = torch.tensor([[*prompt, *row] for prompt, row in zip(prompts, rows, strict=True)])
    losses = token_losses(model(whole[:, :-1]), whole[:, 1:])
    return -float(losses[:, PROMPT - 1 :].mean())


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    log_p = dict(zip(numbers["text"], numbers["log_p"], strict=True))
    varied = dict(zip(numbers["text"], numbers["distinct_3"], strict=True))
    real, trapped = "held-out text", ("greedy", "beam 4")
    return {
        "trapped": min(log_p[text] for text in trapped) - log_p[real],
        "varied when trapped": max(varied[text] for text in trapped) / varied[real],
        "top-p more probable": log_p["top-p 0.9"] - log_p[real],
        "varied with top-p": varied["top-p 0.9"] / varied[real],
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < 60 else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Variety against the model's own opinion, one point a sampler."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(7, 4.2), layout="constrained")
    axes = fig.subplots()
    for name, x, y in zip(numbers["text"], numbers["log_p"], numbers["distinct_3"], strict=True):
        axes.plot(x, y, "o", color="#d66820" if name == "held-out text" else "#2b6cd8")
        axes.annotate(name, (x, y), xytext=(5, 4), textcoords="offset points", fontsize=9)
    axes.set_xlabel("mean log p of a token, by the model")
    axes.set_ylabel("distinct 3-grams")
    axes.set_ylim(0, 1.08)
    axes.set_title("more probable, less varied", fontsize=11, loc="left", fontweight="bold")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
