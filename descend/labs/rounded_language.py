"""A language model in codes of 8 and 4 bits: what its perplexity costs.

    trained    a LLaMA of 1.05 million weights on the Python documentation
    8 bits     its matrices as codes −127..127, a step for every 32 neighbours         `nn/quantized.py`
    4 bits     −7..7, a step for 32 neighbours; and for a whole row, for comparison
    cost       exp(loss after) / exp(loss before) − 1

The loss is the mean cross-entropy of the tokens of held-out windows. Embeddings and norms are not rounded (the head has
a matrix of its own, which is). MF says that 8 bits cost "less than 1%" and gives no model; VOM names both sizes.
The bounds 1% and 5% were set before any seed was measured.

Systems: post-training-quantization
"""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from descend.data.text.plain import Text, Windows
from descend.labs._evidence import Above, AtMost
from descend.labs._train import train
from descend.losses.language import causal_lm_loss, token_losses
from descend.models.llama import Llama, LlamaConfig
from descend.nn.quantized import count_bytes, quantize

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("MF-C.82", "VOM-B.143")
PRINTED = "8 bits instead of 32 make a model four times smaller at a small loss of quality."
CLAIM = "A trained language model loses at most 1% of its perplexity in codes of 8 bits, and 5% in codes of 4."
PREDICTIONS = (
    AtMost("cost of 8 bits", 0.01, "perplexity rises by at most 1%; more refutes it"),
    AtMost("cost of 4 bits", 0.05, "in groups of 32 it rises by at most 5%; more refutes it"),
)
CONTROLS = (Above("nats learned", 1.5, "the model has learned: it is 1.5 nats a token below equal chances"),)
SCOPE = "one small model, minutes of training; large models have outliers that small ones lack"
BUDGET = 45.0
PRICE = 10  # steps that a second of one core buys
LEAST = 400
CONTEXT, BATCH, RATE, TESTED = 64, 16, 3e-3, 100
FORMS = {"8 bits": (8, 32), "8 bits, rows": (8, 0), "4 bits": (4, 32), "4 bits, rows": (4, 0)}


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Perplexity and bytes of each form."""
    steps = max(2, round(PRICE * budget))
    corpus = Text(tokenizer="bpe", vocab=1024).open(CONTEXT)
    vocab = corpus.tokenizer.vocab
    held = corpus.valid[: TESTED * (CONTEXT + 1)].long().unflatten(0, (-1, CONTEXT + 1))
    torch.manual_seed(seed)
    model = Llama(LlamaConfig(vocab, CONTEXT, width=128, depth=4, heads=4, kv_heads=2, hidden=384))
    stream = Windows(corpus.train, CONTEXT, BATCH, seed)

    def loss() -> Tensor:
        batch = next(stream)
        return causal_lm_loss(model(batch["x"]), batch["y"])

    train(model, loss, steps, RATE)
    columns: dict[str, list[Any]] = {"form": ["32 bits"], "loss": [measure_loss(model, held)], "bytes": [weigh(model)]}
    for name, (bits, group) in FORMS.items():
        rounded = copy.deepcopy(model)
        quantize(rounded, bits, group)
        columns["form"].append(name)
        columns["loss"].append(measure_loss(rounded, held))
        columns["bytes"].append(weigh(rounded))
    return {**columns, "steps": steps, "vocab": vocab, "tokens": TESTED * CONTEXT}


@torch.no_grad()
def measure_loss(model: nn.Module, held: Tensor) -> float:
    """Nats per token."""
    return float(token_losses(model.eval()(held[:, :-1]), held[:, 1:]).double().mean())


def weigh(model: nn.Module) -> int:
    return count_bytes(model.state_dict().values())


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    loss = dict(zip(numbers["form"], numbers["loss"], strict=True))
    return {
        **{f"cost of {name}": math.expm1(loss[name] - loss["32 bits"]) for name in ("8 bits", "4 bits")},
        "nats learned": math.log(numbers["vocab"]) - loss["32 bits"],
    }


def needs(numbers: dict[str, Any]) -> float:
    return 0.0 if numbers["steps"] >= LEAST else LEAST / PRICE


def figure(numbers: dict[str, Any]) -> Figure:
    """Perplexity over bytes."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6, 3.6), layout="constrained")
    axes = fig.subplots()
    size = [bytes_ / 1e6 for bytes_ in numbers["bytes"]]
    perplexity = [math.exp(loss) for loss in numbers["loss"]]
    axes.plot(size, perplexity, "o")
    for name, x, y in zip(numbers["form"], size, perplexity, strict=True):
        axes.annotate(name, (x, y), xytext=(5, 4), textcoords="offset points")
    axes.set_xlabel("MB")
    axes.set_ylabel("perplexity")
    axes.spines[["top", "right"]].set_visible(False)
    return fig
