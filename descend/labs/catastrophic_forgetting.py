"""Catastrophic forgetting: what fine-tuning on a narrow domain does to what was known, and what helps against it.

    pre-train     on the Python documentation, next tokens
    fine-tune     on conversations of six short tasks (first, count, larger, ..), the answers' tokens
      plain         all weights, the rate η of pre-training
      lower rate    the same with η / 10
      stopped       plain, ended when the loss of general text has risen by 0.3 nats (looked at 10 times)
      penalty       plain and λ ‖θ − θ_pre‖²
      replay        3 of 10 examples are windows of the general text
      frozen        embedding and first block stay as they are
      LoRA          rank 4 beside the frozen weights; detached, the model is the old one bit for bit
    report        the loss of a token, of held-out general text and of held-out answers

VOM 13.6.4 lists the mitigations without figures; neither λ, the replayed share nor the patience is given there.

Chosen on seed 10: λ = 0.5, the share of 0.3, the rates and the 0.3 nats. The model is small and the domain far from the
text, so that plain fine-tuning forgets much within a minute.

Systems: catastrophic-forgetting
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from descend.contracts import Batch
from descend.data.streams.mixture import Mixture, Stage
from descend.data.text.conversation_batches import Dialogues, DialoguesInOrder, Replayed, encode_records, join_rows
from descend.data.text.conversation_source import Conversations
from descend.data.text.plain import Passages, Windows, python_documentation
from descend.engine.evaluation import score_set
from descend.labs._evidence import AtLeast, AtMost
from descend.labs._train import train
from descend.losses.language import causal_lm_loss
from descend.losses.pretrained import PretrainedPenalty
from descend.models.llama import Llama, LlamaConfig
from descend.nn.adapters.lora import LowRankUpdates
from descend.nn.transfer import freeze
from descend.tasks.instruct import Instruct
from descend.text.chat_template import name_roles
from descend.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("VOM-B.81", "VOM-B.84")
PRINTED = (
    "After fine-tuning the loss on the original distribution rises; lower rate, early stopping, a"
    " penalty toward the old weights, replay and PEFT mitigate it (no figures)."
)
CLAIM = (
    "Fine-tuning on a narrow domain raises the loss of general text; a lower rate, early stopping, a penalty toward the"
    " pre-trained weights, replay, frozen layers and LoRA each keep more of it, while the domain is still learned; LoRA"
    " detached restores the model exactly."
)
PREDICTIONS = (
    AtLeast("forgotten", 0.3, "Nats by which plain fine-tuning raises the general loss."),
    AtMost(
        "kept by all",
        0.8,
        "The largest rise with a mitigation as a share of the plain one; near 1, one of them would not help.",
    ),
    AtLeast("learned", 0.5, "Nats by which the loss of the domain falls, the least of all ways."),
    AtLeast("restored", 1, "1 where the model without LoRA is the base to the bit."),
)
SCOPE = (
    "A small GPT on the Python documentation and six toy tasks; λ, the replayed share and the rates"
    " were chosen on seed 10."
)
WAYS = ("plain", "lower rate", "stopped", "penalty", "replay", "frozen", "LoRA")
CONTEXT, VOCAB, BATCH = 64, 512, 16
RATE, LAMBDA, SHARE, ALLOWED, CHECKS, RANK = 3e-3, 0.5, 0.3, 0.3, 10, 4
BUDGET = 20.0
PRICE = 14  # steps of pre-training that a second of one core buys, the rest included; a third as many of fine-tuning
LEAST = 200  # steps of pre-training below which nothing is said


class World(NamedTuple):
    """The data of both sides."""

    tokenizer: Tokenizer
    text: Tensor
    general: list[Batch]
    arrays: Batch
    domain: list[Batch]


def prepare(seed: int) -> World:
    """Tokens of general text and of conversations, by one tokenizer that was learned from the text."""
    text = python_documentation()
    cut = round(0.9 * len(text))
    tokenizer = name_roles(Tokenizer.bpe(text[:cut], VOCAB))
    train_tokens, valid = (torch.tensor(tokenizer.encode(part)) for part in (text[:cut], text[cut:]))
    records = Conversations(count=1200, held_out=120).read()
    arrays, held = (encode_records(part, tokenizer, CONTEXT) for part in (records.train, records.valid))
    general = list(Passages(valid, CONTEXT - 1, 32, 96))
    return World(tokenizer, train_tokens, general, arrays, list(DialoguesInOrder(held, 64)))


def pretrain(world: World, steps: int, seed: int) -> Llama:
    """The model that knows the general text."""
    torch.manual_seed(seed)
    model = Llama(LlamaConfig(world.tokenizer.vocab, CONTEXT, 64, 2, 4, 4, 128, tied=True))
    windows = Windows(world.text, CONTEXT - 1, BATCH, seed)

    def loss() -> Tensor:
        batch = next(windows)
        return causal_lm_loss(model(batch["x"]), batch["y"])

    train(model, loss, steps, RATE)
    return model


def judge(model: nn.Module, world: World) -> dict[str, float]:
    """Losses of a token, of general text and of the answers."""
    general = score_set(Instruct(model), world.general)["general_loss"]
    total, count = 0.0, 0
    for batch in world.domain:
        with torch.no_grad():
            total += float(Instruct(model).score(batch)["token_loss"].double().sum())
        count += int(batch["said"].sum())
    return {"general": general, "domain": total / count}


def tune(way: str, base: Llama, world: World, steps: int, seed: int) -> dict[str, Any]:
    """Fine-tune a copy of the base in one of the ways."""
    model = copy.deepcopy(base)
    stream = batches(world, SHARE if way == "replay" else 0.0, seed)
    task = Instruct(model)
    learn: nn.Module = model
    extra: Callable[[], Tensor | float] = lambda: 0.0
    if way == "penalty":
        penalty = PretrainedPenalty(model, LAMBDA)
        extra = lambda: penalty(model)
    if way == "frozen":
        freeze(model, ["embed", "blocks.0"])
    if way == "LoRA":
        freeze(model, ["embed", "blocks", "norm"])
        learn = LowRankUpdates.make(model, rank=RANK)
        learn.attach(model)
    loss = lambda: task.loss(next(stream)).total() + extra()
    if way == "stopped":
        found = stop_early(model, loss, world, steps)
    else:
        train(learn, loss, steps, RATE / 10 if way == "lower rate" else RATE)
        found = judge(model, world)
    if isinstance(learn, LowRankUpdates):
        learn.detach()
        found["restored"] = float(all(torch.equal(*pair) for pair in outputs(model, base, world)))
    return found


def batches(world: World, share: float, seed: int) -> Iterator[Batch]:
    """Conversations, with so much general text between them."""
    dialogues = Dialogues(world.arrays, BATCH, BATCH, seed)
    if not share:
        return dialogues  # type: ignore[return-value]  # read by next alone
    sources: Any = {"task": dialogues, "general": Replayed(world.text, CONTEXT, seed)}
    return Mixture(sources, [Stage({"task": 1 - share, "general": share})], BATCH, seed, join=join_rows)  # type: ignore[return-value]


def stop_early(model: Llama, loss: Callable[[], Tensor], world: World, steps: int) -> dict[str, float]:
    """Train in parts; the state before the first part that loses too much general text."""
    start = judge(model, world)["general"]
    best = judge(model, world)
    for _ in range(CHECKS):
        before = copy.deepcopy(model.state_dict())
        train(model, loss, max(1, steps // CHECKS), RATE / 3)
        now = judge(model, world)
        if now["general"] > start + ALLOWED:
            model.load_state_dict(before)
            break
        best = now
    return best


@torch.no_grad()
def outputs(model: nn.Module, base: nn.Module, world: World) -> list[tuple[Tensor, Tensor]]:
    """Logits of both on the first general batch."""
    x = world.general[0]["x"]
    return [(model(x), base(x))]


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Losses before and after each way of fine-tuning."""
    steps = max(8, round(PRICE * budget))
    world = prepare(seed)
    base = pretrain(world, steps, seed)
    before = judge(base, world)
    found = {way: tune(way, base, world, max(4, steps // 3), seed) for way in WAYS}
    return {
        "way": ["before", *WAYS],
        "general": [before["general"], *(found[way]["general"] for way in WAYS)],
        "domain": [before["domain"], *(found[way]["domain"] for way in WAYS)],
        "restored": found["LoRA"]["restored"],
        "steps": steps,
    }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    rises = [value - numbers["general"][0] for value in numbers["general"][1:]]
    return {
        "forgotten": rises[0],
        "kept by all": max(rises[1:]) / rises[0] if rises[0] > 0 else math.nan,
        "learned": min(numbers["domain"][0] - value for value in numbers["domain"][1:]),
        "restored": float(numbers["restored"] == 1),
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """General against domain loss: down and to the left is better."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6.5, 4.2), layout="constrained")
    axes = fig.subplots()
    for way, general, domain in zip(numbers["way"], numbers["general"], numbers["domain"], strict=True):
        color = {"before": "0.5", "plain": "#d66820"}.get(way, "#2b6cd8")
        axes.plot([domain], [general], "o", color=color)
        axes.annotate(way, (domain, general), xytext=(5, 4), textcoords="offset points", fontsize=9)
    axes.axhline(numbers["general"][0], color="0.8", ls=":")
    axes.set_xlabel("loss of an answer's token (domain)")
    axes.set_ylabel("loss of a token of general text")
    axes.set_title("what is learned, and what is forgotten", fontsize=11, loc="left", fontweight="bold")
    axes.spines[["top", "right"]].set_visible(False)
    return fig
