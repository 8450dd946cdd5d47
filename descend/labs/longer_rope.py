"""Rotary positions beyond the trained length: what interpolation and NTK scaling do to the perplexity.

    none             angles m θ_i that no training has shown, as soon as m exceeds the trained length
    interpolation    m θ_i / s                      all angles are in the trained range, but nearer to each other
    NTK              base · s^(k/(k−2))             the fastest waves stay, the slowest are interpolated

A small LLaMA learns windows of 32 tokens of the Python documentation. Then, without any further training, it reads
windows of 128 tokens of held-out text under each rule, s = 4; the perplexity is that of tokens 65 to 128, of which each
has at least twice the trained length before it. Beside it: tokens 17 to 32 of the same windows read alone, where
nothing is new and the rules can only cost.

Systems: rope-scaling
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from descend.data.text.plain import Text, Windows
from descend.labs._evidence import Above, Below
from descend.labs._train import train
from descend.losses.language import causal_lm_loss, token_losses
from descend.models.llama import Llama, LlamaConfig
from descend.nn.attention.rotary import Rope, ntk_base

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("S940-DLD.160",)
PRINTED = (
    "RoPE scaling for long context (a name only; the papers: position interpolation, NTK-aware change of the base)."
)
CLAIM = (
    "Beyond the trained length the perplexity of a model with rotary positions rises; interpolated angles and NTK"
    " scaling both keep it lower, without training."
)
PREDICTIONS = (
    Above(
        "rises beyond",
        1.05,
        "Perplexity beyond the trained length over that within, without a rule.",
    ),
    Below("with a rule", 0.98, "The larger perplexity of both rules there over that without one."),
)
SCOPE = "A LLaMA of width 64, trained on 32 tokens, asked at 128."
TRAINED, LONG, WIDTH, HEADS, DEPTH, BATCH, RATE = 32, 128, 64, 4, 2, 24, 6e-3
FACTOR, THETA = LONG // TRAINED, 10000.0
RULES = {
    "none": Rope(THETA),
    "interpolation": Rope(THETA, "linear", FACTOR),
    "NTK": Rope(ntk_base(THETA, WIDTH // HEADS, FACTOR)),
}
TESTED = 60  # held-out windows
BUDGET = 8.0
PRICE = 50  # steps that a second of one core buys
LEAST = 250  # steps below which nothing is said


def train_short(steps: int, seed: int) -> tuple[Llama, Tensor]:
    """A model trained on short windows, and long held-out windows (n, LONG + 1)."""
    corpus = Text(vocab=512).open(TRAINED)
    torch.manual_seed(seed)
    model = Llama(
        LlamaConfig(corpus.tokenizer.vocab, TRAINED, WIDTH, DEPTH, HEADS, HEADS, 2 * WIDTH, rope=RULES["none"])
    )
    for layer in model.modules():  # the released N(0, 0.02²) is for wide models
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=layer.in_features**-0.5)
    stream = Windows(corpus.train, TRAINED, BATCH, seed)

    def loss() -> Tensor:
        batch = next(stream)
        return causal_lm_loss(model(batch["x"]), batch["y"])

    train(model, loss, steps, RATE)
    return model.eval(), corpus.valid[: TESTED * (LONG + 1)].long().unflatten(0, (-1, LONG + 1))


def with_rule(model: Llama, rule: Rope) -> Llama:
    """The same weights, read with other angles, for long texts."""
    longer = Llama(replace(model.config, context=LONG, rope=rule))
    longer.load_state_dict(model.state_dict())
    return longer.eval()


@torch.no_grad()
def perplexities(model: Llama, windows: Tensor) -> tuple[float, float]:
    """Within the trained length (read alone), and beyond twice that."""
    short = token_losses(model(windows[:, :TRAINED]), windows[:, 1 : TRAINED + 1])[:, TRAINED // 2 :]
    long = token_losses(model(windows[:, :-1]), windows[:, 1:])[:, 2 * TRAINED :]
    return math.exp(float(short.mean())), math.exp(float(long.mean()))


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Perplexity of each rule, within and beyond the trained length."""
    steps = max(2, round(PRICE * budget))
    model, windows = train_short(steps, seed)
    found = [perplexities(with_rule(model, rule), windows) for rule in RULES.values()]
    within, beyond = (list(column) for column in zip(*found, strict=True))
    return {"rule": list(RULES), "within": within, "beyond": beyond, "steps": steps, "length": [TRAINED, LONG]}


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    none, *rules = numbers["beyond"]
    return {"rises beyond": none / numbers["within"][0], "with a rule": max(rules) / none}


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Two bars for each rule."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6, 3.8), layout="constrained")
    axes = fig.subplots()
    for shift, name, color in ((-0.2, "within", "#2b6cd8"), (0.2, "beyond", "#d66820")):
        axes.bar([i + shift for i in range(3)], numbers[name], 0.38, color=color, label=f"{name} the trained length")
    axes.set_xticks(range(3), numbers["rule"])
    axes.set_title("perplexity", fontsize=11, loc="left", fontweight="bold")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
