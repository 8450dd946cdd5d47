"""Recipes that bring a language model in line with what people prefer: a reward model, DPO, PPO, or the whole chain.

    --start.path RUN       a language model, trained before: what would make one is left out
    --rewards.path RUN     a reward model, trained before: the same (PPO)
    --data.path FILE       prompt, chosen and rejected (.jsonl); without it, generated opinions

Without such paths one run does it all, stage by stage, in one process: `--schedule.shares` says how its steps are
shared. A run of one stage is an ordinary task, whose reference and reward model are frozen parts, known by checksum.

Systems: multi-stage-training, rlhf
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from descend.contracts import Batch, Task
from descend.data.streams.shards import process
from descend.data.streams.stages import StagedStream
from descend.data.text.preference_source import PreferenceParts, Preferences
from descend.data.text.preferences import PreferencesInOrder, split_pairs, tokenize
from descend.data.text.sentiment import generate_opinions
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.alignment_stages import (
    AlignmentStage,
    OfStage,
    Workshop,
    save_beside,
    silence_dropout,
    take_beside,
)
from descend.kinds.recipe import Recipe, describe_batch, fit_batch, require_replicas
from descend.kinds.start_language import StartLanguage
from descend.models import config_class
from descend.optim.rules import AdamW
from descend.optim.stages import InStages
from descend.ranges import Length
from descend.tasks.chain import Chain
from descend.text.chat_template import add_roles
from descend.text.tokenizer import END, Tokenizer

FIRST = ("pretrain", "instruct")  # what makes a language model
STATE = "stages.json"  # beside a checkpoint: how far the run had come


@dataclass(frozen=True)
class Alignment(Recipe):
    """What the kinds share: a language model, preferences, and stages."""

    model: Any = field(default_factory=lambda: config_class("gpt2")())
    """What is built from random weights; a model to start from brings its own sizes."""
    data: Preferences = field(default_factory=Preferences)
    start: StartLanguage = field(default_factory=StartLanguage)
    optim: AdamW = field(default_factory=AdamW)
    """Of the last stage."""
    before: AdamW = field(default_factory=AdamW)
    """Of the stages before it."""
    schedule: InStages = field(default_factory=InStages)
    longest: Length = 16
    """Tokens of a response that the model writes, at most."""
    all_stages: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        shares = self.schedule.shares
        if len(shares) == len(self.all_stages) > len(self.stages):  # those of the stages that are left
            left = tuple(share for share, name in zip(shares, self.all_stages, strict=True) if name in self.stages)
            object.__setattr__(self, "schedule", replace(self.schedule, shares=left))
        elif len(shares) != len(self.stages):
            names = ", ".join(self.stages)
            raise Mistake(
                f"--schedule.shares {' '.join(map(str, shares))}: this run has {len(self.stages)} stages ({names}); "
                f"give as many shares"
            )

    @property
    def stages(self) -> tuple[str, ...]:
        """Those that this run has."""
        return tuple(name for name in self.all_stages if not (self.start.path and name in FIRST))

    # Building

    def build(self) -> Parts:
        loop, records = self.loop, self.data.read()
        begun = self.start.begin(
            self.model, lambda: self.learn(records), lambda found: prepare(found, records), loop.seed
        )
        batch = fit_batch(loop, len(records["train"]))
        shop = Workshop(self, records, silence_dropout(begun.model), begun.tokenizer, batch)
        chain: list[Task] = []
        stages = [self.make_stage(shop, name, n, chain) for n, name in enumerate(self.stages)]
        whole = join_stages(self, shop, stages)
        chain.append(whole.task)
        unit = "texts" if self.stages[-1] == "policy" else "prompts" if self.stages[-1] == "reward" else "pairs"
        facts = {
            **records.facts,
            **({"started from": self.start.path, "its checksum": begun.base.checksum} if begun.base else {}),
            "stages": ", ".join(self.stages),
            "vocabulary": shop.tokenizer.vocab,
            **describe_batch(loop, batch),
        }
        return replace(
            whole,
            unit=unit,
            units_per_batch=batch,
            facts=facts,
            exhibits=lambda: shop.show(stages[-1].rate),
        )

    def make_stage(self, shop: Workshop, name: str, number: int, chain: list[Task]) -> AlignmentStage:
        """A stage by its name."""
        if name != "policy":
            stage: AlignmentStage = getattr(shop, name)(number)
            return stage

        def enter() -> None:
            if isinstance(chain[0], Chain):
                chain[0].enter(number)

        return shop.policy(number, enter)

    def learn(self, records: PreferenceParts) -> Tokenizer:
        """A tokenizer of the training texts."""
        return Tokenizer.learn([*self.data.texts(records["train"]), *self.more_texts()], "bpe", self.data.vocab)

    def more_texts(self) -> list[str]:
        """What else the tokenizer learns from."""
        return [] if self.data.path else generate_opinions().texts

    # New and held-out data

    def test(self) -> Iterable[Batch]:
        records = self.data.read()
        tokenizer = self.start.read_tokenizer(lambda: self.learn(records), lambda found: prepare(found, records))
        context = self.start.read_config(self.model).context
        found = self.batches(records, tokenizer, context)
        return found if len(self.stages) == 1 else OfStage(found, len(self.stages) - 1)

    def batches(self, records: PreferenceParts, tokenizer: Tokenizer, context: int) -> Iterable[Batch]:
        """The test part for the last stage."""
        return PreferencesInOrder(tokenize(split_pairs(records["test"]), tokenizer, context), 64)


# Putting stages together


def prepare(tokenizer: Tokenizer, records: PreferenceParts) -> Tokenizer:
    """With an end of texts, and with roles where there are messages."""
    if any(not isinstance(record.prompt, str) for part in records.parts.values() for record in part):
        return add_roles(tokenizer)
    return tokenizer if tokenizer.end is not None else tokenizer.with_specials({"eos_token": END})


def join_stages(recipe: Alignment, shop: Workshop, stages: list[AlignmentStage]) -> Parts:
    """One task and one stream; of a single stage its own."""
    loop, last = recipe.loop, stages[-1].link
    model: Any = shop.scorer if last.name == "reward" else shop.language
    if len(stages) == 1:
        require_replicas(loop.parallel)
        player = last.task.players[0]
        optims: dict[str, Any] = {player: recipe.optim}
        return Parts(last.task, model, stages[0].stream, stages[0].valid, optims, save_extra=shop.tokenizer.save)
    if process()[1] > 1:
        raise Mistake("a run of several stages is one process; train them one by one, with --start.path")
    names = {stage.link.name for stage in stages}
    parts: dict[str, Any] = {"language": shop.language}
    parts |= {"reward": shop.scorer} if names & {"reward", "policy"} else {}
    parts |= {"reference": shop.reference} if names & {"prefer", "policy"} else {}
    parts |= {"policy": shop.values if "policy" in names else shop.language} if names & {"prefer", "policy"} else {}
    frozen = ("reward",) if "policy" in names and "reward" not in names else ()
    chain = Chain(parts, [stage.link for stage in stages], frozen)
    ends = recipe.schedule.ends(loop.steps)
    kept = {"reward", "reference"} - set(frozen)
    beside = {name: part for name, part in parts.items() if name in kept and part is not model}

    def save_extra(folder: Path) -> None:
        shop.tokenizer.save(folder)
        save_beside(folder, beside, shop.tokenizer)
        (folder / STATE).write_text(json.dumps({"begun": int(chain.begun)}), encoding="utf-8")

    def take_extra(folder: Path) -> None:
        take_beside(folder, beside)
        chain.begun.fill_(json.loads((folder / STATE).read_text(encoding="utf-8"))["begun"])

    order = [len(stages) - 1, *range(len(stages) - 1)]  # the score that is watched first
    return Parts(
        chain,
        model,
        StagedStream([stage.stream for stage in stages], ends, loop.accumulate),
        [batch for n in order for batch in OfStage(stages[n].valid, n)],
        {player: recipe.optim if player == last.player else recipe.before for player in chain.players},
        save_extra=save_extra,
        take_extra=take_extra,
    )
