"""Instruction tuning: tasks that were never shown, asked for in words; and a student that learns from a teacher.

    instruction    "POSITION letter of WORD, FORM"      position: first, second, third, last
                                                        form: as it is, in capitals, twice
    trained on     9 of the 12 pairs of position and form, with the loss on the answers alone
    held out       3 pairs, one of each form: their words were all seen, but never together
      untuned        the model before instruction tuning: it has read as many instructions as text, without answers
      tuned          the same after it
    teacher        the tuned model answers instructions that have no labels; a smaller student learns from its answers
                   and is asked the same questions as the teacher

S940 12.1 and VOM 13.5 claim both without figures of their own: zero-shot generalisation to held-out tasks, and
responses of a larger model as data (distillation by sequences).

The weights begin as N(0, 1/width): with the 0.02 of large models so narrow a one stands still at first, on some seeds
for most of the training.

Chosen on seeds 10 to 12: the sizes, the rate, and which pairs are held out (so that each word is in a pair that is
trained).

Systems: instruction-tuning, instruction-dataset
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.data.text.conversation_batches import Dialogues, encode_records
from descend.data.text.conversations import Dialogue, Record
from descend.data.text.instruction_sources import ask_teacher
from descend.labs._evidence import AtLeast
from descend.labs._train import train
from descend.models.llama import Llama, LlamaConfig
from descend.tasks.instruct import Instruct
from descend.text.chat_template import add_roles
from descend.text.tokenizer import Tokenizer
from descend.views.conversations import answer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("S940-DLD.147", "VOM-B.76", "VOM-B.77")
PRINTED = (
    "Instruction tuning on many tasks improves zero-shot generalisation to others; responses of a"
    " larger model serve as data (distillation)."
)
CLAIM = (
    "Tuned on instructions, a model follows combinations of instructions that it was never shown, where the untuned"
    " model follows none; and a smaller student that learned from its answers alone comes near it."
)
PREDICTIONS = (
    AtLeast("follows", 0.5, "Accuracy on held-out instructions, tuned less untuned."),
    AtLeast(
        "student",
        0.9,
        "The student's accuracy over both kinds of tasks as a share of its teacher's.",
    ),
)
SCOPE = (
    "Twelve instructions on words of eight letters, three held out as pairs whose words were all"
    " seen; a model of some 100,000 weights."
)
LETTERS = "abcdefgh"
POSITIONS = {"first": 0, "second": 1, "third": 2, "last": -1}
FORMS = {"as it is": lambda c: c, "in capitals": str.upper, "twice": lambda c: c + c}
HELD_OUT = (("second", "in capitals"), ("last", "twice"), ("first", "as it is"))
BATCH, RATE, RECORDS, ASKED, CONTEXT = 64, 3e-3, 1800, 120, 64
BUDGET = 30.0
PRICE = 18  # steps that a second of one core buys, the rest included
LEAST = 400  # steps below which nothing is said


def make_records(pairs: Sequence[tuple[str, str]], count: int, seed: int) -> list[Record]:
    """Instructions of these pairs of position and form, in turn."""
    chance, found = random.Random(seed), []
    for i in range(count):
        position, form = pairs[i % len(pairs)]
        word = "".join(chance.choices(LETTERS, k=chance.randint(4, 5)))
        asked = f"{position} letter of {word}, {form}"
        said = FORMS[form](word[POSITIONS[position]])
        turns = ({"role": "user", "content": asked}, {"role": "assistant", "content": said})
        found.append(Dialogue(f"record {i}", turns))
    return list(found)


def build(tokenizer: Tokenizer, width: int, seed: int) -> Llama:
    torch.manual_seed(seed)
    return Llama(LlamaConfig(tokenizer.vocab, CONTEXT, width, 2, 4, 4, 2 * width, tied=True, spread=width**-0.5))


def tune(model: Llama, records: list[Record], tokenizer: Tokenizer, steps: int, seed: int, every: bool = False) -> None:
    """Instruction tuning; with `every`, all tokens of the instructions count and none of the answers."""
    arrays = encode_records(records, tokenizer, CONTEXT)
    if every:
        arrays["said"] = ~arrays["said"] & (arrays["tokens"] >= 0)
    stream, task = Dialogues(arrays, BATCH, BATCH, seed), Instruct(model)

    def loss() -> Tensor:
        return task.loss(next(stream)).total()

    train(model, loss, steps, RATE)


def accuracy(model: Llama, records: list[Record], tokenizer: Tokenizer) -> float:
    """Share of questions whose written answer is the right one."""
    asked = [r for r in records if isinstance(r, Dialogue)]
    written = answer(model, tokenizer, [r.messages[:1] for r in asked], 4)
    return sum(text == r.messages[1]["content"] for text, r in zip(written, asked, strict=True)) / len(asked)


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Accuracies on trained and on held-out tasks of the untuned and the tuned model, and of the student."""
    steps = max(6, round(PRICE * budget))
    pairs = [(p, f) for p in POSITIONS for f in FORMS]
    known = [pair for pair in pairs if pair not in HELD_OUT]
    records, seen, unseen = (
        make_records(which, count, 100 * seed + k)
        for k, (which, count) in enumerate(((known, RECORDS), (known, ASKED), (HELD_OUT, ASKED)))
    )
    tokenizer = add_roles(Tokenizer.characters("\n".join(text for record in records for text in record.texts())))
    teacher = build(tokenizer, 64, seed)
    tune(teacher, records, tokenizer, steps // 4, seed, every=True)
    columns: dict[str, list[Any]] = {"model": [], "known": [], "held_out": []}

    def tell(name: str, model: Llama) -> None:
        columns["model"].append(name)
        columns["known"].append(accuracy(model, seen, tokenizer))
        columns["held_out"].append(accuracy(model, unseen, tokenizer))

    tell("untuned", teacher)
    tune(teacher, records, tokenizer, steps, seed)
    tell("tuned", teacher)
    unlabelled = make_records(pairs, RECORDS // 2, 100 * seed + 9)
    questions = [r.messages[0]["content"] for r in unlabelled if isinstance(r, Dialogue)]
    answered, _ = ask_teacher(lambda asked: answer(teacher, tokenizer, asked, 4), questions)
    student = build(tokenizer, 48, seed + 1)
    tune(student, answered, tokenizer, steps, seed)
    tell("student", student)
    return {**columns, "steps": steps, "pairs": len(known)}


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    untuned, tuned, student = zip(numbers["known"], numbers["held_out"], strict=True)
    return {"follows": tuned[1] - untuned[1], "student": sum(student) / sum(tuned) if sum(tuned) else math.nan}


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Bars of accuracy."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6.5, 3.8), layout="constrained")
    axes = fig.subplots()
    at = range(len(numbers["model"]))
    for shift, name, color in ((-0.2, "known", "0.6"), (0.2, "held_out", "#2b6cd8")):
        axes.bar([i + shift for i in at], numbers[name], 0.38, color=color, label=name.replace("_", "-") + " tasks")
    axes.set_xticks(list(at), numbers["model"])
    axes.set_ylim(0, 1.05)
    axes.set_title("exact answers", fontsize=11, loc="left", fontweight="bold")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
