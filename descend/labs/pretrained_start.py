"""Fine-tuning against training from scratch: the same model, the same task, the same steps; how much data is there?

    pre-train     on the Python documentation, next tokens
    task          modules of Python's library, next tokens; n = 1,000, 8,000 and 64,000 tokens to learn from
      fine-tuned    from the pre-trained weights
      scratch       from random weights
    report        the lowest loss of a token of held-out modules, looked at 5 times on the way

    L_fine = − Σ_{(x, y)} log P_θ(y | x),  θ starts at θ_pre  (VOM 13.6.1)

Looking on the way is fair to both: with little data each has its best moment before it learns its few pages by heart.
VOM claims that "100 to 10,000 times less data" is enough, and gives no measurement. Chosen on seed 10: sizes and rates.

Systems: fine-tuning-objective
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.data.text.mixed import read_library
from descend.data.text.plain import Passages, Windows, python_documentation
from descend.engine.evaluation import score_set
from descend.labs._evidence import Above, AtLeast
from descend.labs._train import train
from descend.losses.language import causal_lm_loss
from descend.models.llama import Llama, LlamaConfig
from descend.tasks.language import Language
from descend.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("VOM-B.79",)
PRINTED = (
    "Fine-tuning needs 100 to 10,000 times less data than pre-training, and beats training from scratch on little."
)
CLAIM = (
    "From pre-trained weights a language model reaches a lower loss on another kind of text than from random ones, and"
    " the less of that text there is, the more is gained."
)
PREDICTIONS = (
    AtLeast("least data", 0.3, "Nats gained by the pre-trained start with 1,000 tokens."),
    Above("always", 0.0, "The smallest gain over the three sizes of data."),
    AtLeast("falls", 0.05, "Gain with 1,000 tokens less that with 64,000: with enough data the start matters less."),
)
SCOPE = "A LLaMA of 0.1 M parameters, prose to code, with the same number of steps everywhere."
SIZES, HELD_OUT = (1000, 8000, 64000), 12000  # tokens
CONTEXT, VOCAB, BATCH, RATE, TUNING, CHECKS = 64, 512, 12, 3e-3, 1e-3, 5
BUDGET = 35.0
PRICE = 12  # steps of pre-training that a second of one core buys; a quarter as many for each fine-tuning
LEAST = 300  # steps of pre-training below which nothing is said


def teach(model: Llama, text: Tensor, steps: int, rate: float, seed: int) -> None:
    """Next tokens of a text."""
    windows = Windows(text, CONTEXT, BATCH, seed)

    def loss() -> Tensor:
        batch = next(windows)
        return causal_lm_loss(model(batch["x"]), batch["y"])

    train(model, loss, steps, rate)


def judge(model: Llama, held_out: Passages) -> float:
    """The mean loss of a token."""
    return score_set(Language(model), held_out)["loss"]


def tune(start: Llama, text: Tensor, held_out: Passages, steps: int, rate: float, seed: int) -> float:
    """The lowest loss on the way, from a copy of the start."""
    model = copy.deepcopy(start)
    found = []
    for k in range(CHECKS):
        teach(model, text, max(1, steps // CHECKS), rate, seed + 100 * k)
        found.append(judge(model, held_out))
    return min(found)


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Losses from both starts, over the amount of data."""
    steps = max(4, round(PRICE * budget))
    prose, code = python_documentation(), read_library()
    tokenizer = Tokenizer.bpe(prose + code[: len(code) // 4], VOCAB)
    text = torch.tensor(tokenizer.encode(prose))
    domain = torch.tensor(tokenizer.encode(code[: 6 * (max(SIZES) + HELD_OUT)]))
    held_out = Passages(domain[-HELD_OUT:], CONTEXT, 32, 96)
    torch.manual_seed(seed)
    scratch = Llama(LlamaConfig(tokenizer.vocab, CONTEXT, 64, 2, 4, 4, 128, tied=True))
    base = copy.deepcopy(scratch)
    teach(base, text, steps, RATE, seed)
    tuning = max(CHECKS, steps // 4)
    rows = [domain[:n] for n in SIZES]
    return {
        "tokens": list(SIZES),
        "fine-tuned": [tune(base, row, held_out, tuning, TUNING, seed) for row in rows],
        "scratch": [tune(scratch, row, held_out, tuning, RATE, seed) for row in rows],
        "before": judge(base, held_out),
        "steps": steps,
    }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    gains = [b - a for a, b in zip(numbers["fine-tuned"], numbers["scratch"], strict=True)]
    return {"least data": gains[0], "always": min(gains), "falls": gains[0] - gains[-1]}


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Loss over the amount of data."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6.5, 3.8), layout="constrained")
    axes = fig.subplots()
    for name, color in (("scratch", "#d66820"), ("fine-tuned", "#2b6cd8")):
        axes.plot(numbers["tokens"], numbers[name], "o-", color=color, label=name)
    axes.axhline(numbers["before"], color="0.7", ls=":", label="pre-trained, before")
    axes.set_xscale("log")
    axes.set_xlabel("tokens of the task")
    axes.set_ylabel("loss of a held-out token")
    axes.set_title("what a pre-trained start is worth", fontsize=11, loc="left", fontweight="bold")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
