"""Language modelling recipes for mixtures of experts: the same text, and a loss that keeps the experts in use."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from descend.engine.parts import Parts
from descend.kinds.language import LanguageRecipe
from descend.models.mixtral import MixtralConfig
from descend.ranges import NonNegative
from descend.tasks.language import BalancedLanguage, Language


@dataclass(frozen=True)
class ExpertsLanguageRecipe(LanguageRecipe):
    """A causal language model with experts; `balance` is the weight α of the load-balancing loss."""

    model: Any = field(default_factory=MixtralConfig)
    balance: NonNegative = 0.02

    def build(self) -> Parts:
        parts = super().build()
        assert isinstance(parts.task, Language)
        return replace(parts, task=BalancedLanguage(parts.model, self.balance, parts.task.bytes_per_token))
