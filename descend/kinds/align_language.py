"""Kinds of alignment: a reward model, DPO, PPO with a reward model, and the whole chain (`kinds/alignment.py`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from descend.contracts import Batch
from descend.data.text.plain import Text
from descend.data.text.preference_source import PreferenceParts
from descend.data.text.preferences import PreferencesInOrder, read_preferences, tokenize
from descend.kinds.alignment import Alignment
from descend.kinds.alignment_stages import repeat_prompts
from descend.kinds.origin import find_files
from descend.kinds.recipe import Judged
from descend.ranges import NonNegative, Positive
from descend.tasks.language_policy import ProximalTokens
from descend.tasks.reward import RankResponses
from descend.text.tokenizer import Tokenizer
from descend.views.preferences import show_pairs


@dataclass(frozen=True)
class PlainText:
    """Plain text for the first stage."""

    path: str = ""
    """A UTF-8 text; empty: generated opinions."""

    def read(self) -> str:
        """All of it."""
        return Text(path=self.path).read()


@dataclass(frozen=True)
class RewardStart:
    """Who judges."""

    path: str = ""
    """A run or a folder of a reward model; empty: a stage of this run trains one."""


@dataclass(frozen=True)
class RewardModel(Alignment):
    """A reward model, which begins as a language model."""

    all_stages: ClassVar[tuple[str, ...]] = ("instruct", "reward")

    def batches(self, records: PreferenceParts, tokenizer: Tokenizer, context: int) -> Iterable[Batch]:
        return PreferencesInOrder(tokenize(records["test"], tokenizer, context), 64)

    def judge(self, path: str, model: Any, folder: Path) -> Judged:
        """New preferences: loss, accuracy and margin."""
        tokenizer, task = Tokenizer.load(folder), RankResponses(model)
        records = read_preferences(path)
        context = model.config.context
        batches = PreferencesInOrder(tokenize(records, tokenizer, context), 64)
        rate = lambda batch: task.rewards(batch)[0]
        return Judged(task, batches, lambda: show_pairs(rate, records, tokenizer, context))


@dataclass(frozen=True)
class PreferDirectly(Alignment):
    """Direct preference optimization."""

    beta: Positive = 0.1
    """β: how dearly leaving the reference is paid for; a smaller one goes further."""
    anchor: NonNegative = 0.0
    """α: weight of −log π of a chosen token, which keeps the chosen responses likely; 0: DPO as published."""
    all_stages: ClassVar[tuple[str, ...]] = ("instruct", "prefer")


@dataclass(frozen=True)
class AlignPolicy(Alignment):
    """PPO on tokens, judged by a reward model."""

    rewards: RewardStart = field(default_factory=RewardStart)
    ppo: ProximalTokens = field(default_factory=ProximalTokens)
    all_stages: ClassVar[tuple[str, ...]] = ("instruct", "reward", "policy")

    @property
    def stages(self) -> tuple[str, ...]:
        return tuple(name for name in super().stages if not (self.rewards.path and name == "reward"))

    def batches(self, records: PreferenceParts, tokenizer: Tokenizer, context: int) -> Iterable[Batch]:
        """Prompts to write for."""
        return repeat_prompts(records, "test", tokenizer, context - self.longest)


@dataclass(frozen=True)
class WholeChain(AlignPolicy):
    """From plain text to an aligned model: pre-training, instruction tuning, a reward model, PPO."""

    text: PlainText = field(default_factory=PlainText)
    all_stages: ClassVar[tuple[str, ...]] = ("pretrain", "instruct", "reward", "policy")

    def files(self) -> dict[str, Path]:
        return super().files() | find_files(self.text)

    def more_texts(self) -> list[str]:
        return [*super().more_texts(), *([self.text.read()] if self.text.path else [])]
