"""Which way of adapting a model fits: a rule of thumb by the number of examples and by what is needed (VOM 13.6.6).

    no examples          a prompt alone
    100 to 1,000         prefix tuning     a variation of a known task, the smallest footprint
    1,000 to 100,000     LoRA              several tasks, general ability is kept, no cost at inference
    (the same)           adapters          modular, many experiments, and some cost at inference is acceptable
    100,000 and more     full              a very different task, a single one, the highest quality

The book leaves open what 1 to 99 examples are for: here they go into the prompt. At a threshold the larger method
counts (1,000: LoRA; 100,000: full). What is needed moves the choice where the number alone would contradict it: full
tuning cannot serve several tasks with one model nor keep its general ability, a prefix is too little for a very
different task, and bottleneck adapters cannot be merged into the weights.

Systems: fine-tuning-recommender
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from descend.errors import Mistake

Method = Literal["prompting", "prefix", "lora", "adapters", "full"]
FEW, SOME, MANY = 100, 1_000, 100_000
"""The book's thresholds."""
METHODS: tuple[Method, ...] = ("prompting", "prefix", "lora", "adapters", "full")


@dataclass(frozen=True)
class TuningNeeds:
    """What is asked of the adapted model beside its quality."""

    tasks: int = 1
    """How many tasks one base serves."""
    different: bool = False
    """The task is very different from what the model has seen."""
    general: bool = False
    """The model must keep its general ability."""
    modular: bool = False
    """Many experiments, with parts that are put in and taken out."""
    overhead: bool = True
    """Some extra time for each token is acceptable."""
    smallest: bool = False
    """What is stored for a task must be as little as can be."""


@dataclass(frozen=True)
class TuningChoice:
    """A method, and why."""

    method: Method
    reasons: tuple[str, ...]


def recommend(examples: int, needs: TuningNeeds = TuningNeeds()) -> TuningChoice:  # noqa: B008 - frozen
    """The method for so many labelled examples."""
    if examples < 0 or needs.tasks < 1:
        raise Mistake(f"{examples} examples for {needs.tasks} tasks: give 0 or more examples, and at least one task")
    if examples < FEW:
        why = "no data to train on" if not examples else f"fewer than {FEW} examples: put them into the prompt"
        return TuningChoice("prompting", (f"{examples:,} examples: {why}",))
    by_size, told = choose_by_size(examples)
    return adjust(by_size, (told,), needs)


def choose_by_size(examples: int) -> tuple[Method, str]:
    """The range that the number lies in."""
    if examples < SOME:
        return "prefix", f"{examples:,} examples: {FEW} to {SOME:,}"
    if examples < MANY:
        return "lora", f"{examples:,} examples: {SOME:,} to {MANY:,}"
    return "full", f"{examples:,} examples: {MANY:,} and more"


def adjust(method: Method, reasons: tuple[str, ...], needs: TuningNeeds) -> TuningChoice:
    """The same method, or the next one that what is needed allows."""
    if method == "full":
        if needs.tasks > 1:
            method, reasons = "lora", (*reasons, f"{needs.tasks} tasks: one base, and something small for each")
        elif needs.general:
            method, reasons = "lora", (*reasons, "general ability is kept: the base stays as it is")
    if method == "prefix" and needs.different:
        method, reasons = "lora", (*reasons, "a very different task: a prefix only varies a known one")
    if method == "lora" and needs.smallest and not needs.different:
        method, reasons = "prefix", (*reasons, "the smallest footprint: m d numbers")
    if method == "lora" and needs.modular:
        if needs.overhead:
            return TuningChoice("adapters", (*reasons, "modular, many experiments, and overhead is acceptable"))
        reasons = (*reasons, "no overhead at inference: LoRA is merged into the weights, adapters cannot be")
    return TuningChoice(method, reasons)
