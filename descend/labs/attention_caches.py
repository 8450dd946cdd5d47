"""Four kinds of attention at the same number of parameters: what they keep for a token, and what they cost in loss.

    MHA    8 key and value heads        2 · 8 · d_h numbers kept for a token and layer
    GQA    2, shared by 4 queries       2 · 2 · d_h
    MQA    1, shared by all             2 · d_h
    MLA    a latent and one turned key  d_c + d_R,   d_c = 4 d_h, d_R = d_h / 2 as in DeepSeek-V2

LLaMA blocks with the first three, DeepSeek-V2's (dense feed-forward parts) with the last. What one attention saves in
matrices its feed-forward part gets, so that all have the same number of parameters within 1%. All see the same windows
of the Python documentation in the same order, and are judged on the same held-out windows. DLN's tables (from
DeepSeek-V2) have MLA ahead of MHA in 7 of 8 rows; those models are some 10⁵ times larger and trained for longer.

Systems: multi-head-latent-attention
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from descend.data.text.plain import Text, Windows
from descend.labs._evidence import AtMost
from descend.labs._train import train
from descend.losses.language import causal_lm_loss, token_losses
from descend.models.deepseek_v2 import DeepseekV2, DeepseekV2Config
from descend.models.llama import Llama, LlamaConfig
from descend.theory.cache import cache_numbers, latent_cache_numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-B.105",)
PRINTED = (
    "In DeepSeek-V2's tables multi-head latent attention is ahead of full attention in 7 of 8 rows,"
    " with a far smaller cache."
)
CLAIM = (
    "At the same number of parameters multi-head latent attention is as good as full multi-head attention, with a"
    " cache several times smaller."
)
PREDICTIONS = (
    AtMost(
        "loss over MHA",
        0.03,
        "MLA's loss less that of full attention, nats a token; more refutes that it is as good.",
    ),
    AtMost(
        "cache of MHA",
        1 / 3,
        'MLA\'s cache as a share of that of full attention; more refutes "several times smaller".',
    ),
)
SCOPE = (
    "Models of 148,000 parameters, 2 layers, 160 steps on the Python documentation; those of the"
    " table are 10⁵ times larger."
)
CONTEXT, BATCH, RATE, WIDTH, DEPTH, HEADS, HIDDEN = 48, 12, 6e-3, 64, 2, 8, 128
SIZE = WIDTH // HEADS
LATENT, TURNED = 4 * SIZE, SIZE // 2
KV_HEADS = {"MHA": HEADS, "GQA": 2, "MQA": 1}
TESTED = 120  # held-out windows
BUDGET = 10.0
PRICE = 16  # steps of all four that a second of one core buys
LEAST = 120  # steps below which nothing is said


def build(kind: str, vocab: int, hidden: int) -> nn.Module:
    """A language model with this attention; weights N(0, 1/n): the released N(0, 0.02²) is for wide models."""
    if kind == "MLA":
        sizes = None, LATENT, SIZE, TURNED, SIZE
        model: nn.Module = DeepseekV2(DeepseekV2Config(vocab, CONTEXT, WIDTH, DEPTH, HEADS, hidden, DEPTH, *sizes))
    else:
        model = Llama(LlamaConfig(vocab, CONTEXT, WIDTH, DEPTH, HEADS, KV_HEADS[kind], hidden))
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=layer.in_features**-0.5)
    return model


def count(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def match(kind: str, vocab: int) -> nn.Module:
    """The model whose hidden width brings its parameters nearest to those of MHA."""
    wanted, there = count(build("MHA", vocab, HIDDEN)), count(build(kind, vocab, HIDDEN))
    return build(kind, vocab, HIDDEN + round((wanted - there) / (3 * WIDTH * DEPTH)))


def cached(kind: str) -> int:
    """Numbers that are kept for a token in all layers."""
    return latent_cache_numbers(LATENT, TURNED, DEPTH) if kind == "MLA" else cache_numbers(KV_HEADS[kind], SIZE, DEPTH)


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Validation loss, cache and parameters of each kind."""
    steps = max(2, round(PRICE * budget))
    corpus = Text(vocab=512).open(CONTEXT)
    held_out = corpus.valid[: TESTED * (CONTEXT + 1)].long().unflatten(0, (-1, CONTEXT + 1))
    kinds = [*KV_HEADS, "MLA"]
    columns: dict[str, list[Any]] = {"attention": kinds, "loss": [], "cache": [], "parameters": []}
    for kind in kinds:
        torch.manual_seed(seed)
        model = match(kind, corpus.tokenizer.vocab)
        stream = Windows(corpus.train, CONTEXT, BATCH, seed)

        def loss(model: nn.Module = model, stream: Windows = stream) -> Tensor:
            batch = next(stream)
            return causal_lm_loss(model(batch["x"]), batch["y"])

        train(model, loss, steps, RATE)
        with torch.no_grad():
            columns["loss"].append(float(token_losses(model(held_out[:, :-1]), held_out[:, 1:]).mean()))
        columns["cache"].append(cached(kind))
        columns["parameters"].append(count(model))
    return {**columns, "steps": steps, "tokens": TESTED * CONTEXT}


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    loss, cache = (dict(zip(numbers["attention"], numbers[name], strict=True)) for name in ("loss", "cache"))
    return {"loss over MHA": loss["MLA"] - loss["MHA"], "cache of MHA": cache["MLA"] / cache["MHA"]}


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """The loss over the cache."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6, 3.8), layout="constrained")
    axes = fig.subplots()
    axes.plot(numbers["cache"], numbers["loss"], "o", color="#2b6cd8", ms=7)
    for name, x, y in zip(numbers["attention"], numbers["cache"], numbers["loss"], strict=True):
        axes.annotate(name, (x, y), xytext=(6, 4), textcoords="offset points")
    axes.set_xscale("log", base=2)
    axes.set_xlabel("numbers kept for a token")
    axes.set_title("validation loss, nats per token", fontsize=11, loc="left", fontweight="bold")
    axes.spines[["top", "right"]].set_visible(False)
    return fig
