"""The choice of an adapter, as a recipe holds it: `adapter.apply(model)` freezes the model and gives it one.

    --adapter lora --adapter.rank 8 --adapter.targets attn.q attn.v      LoRA
    --adapter bottleneck --adapter.size 16                               bottleneck adapters
    --adapter soft-prompt --adapter.tokens 20                            a soft prompt
    --adapter prefix --adapter.tokens 20                                 keys and values in front of every layer
    --adapter none                                                       no adapter: the weights learn

Prompts and prefixes begin as tokens of the vocabulary, drawn at random: what the model makes of them is what it knows.

Systems: lora, bottleneck-adapters, prefix-tuning
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.models._adapted import Adapted, adapt
from descend.nn.adapters.bottleneck import SUBLAYERS, BottleneckAdapters
from descend.nn.adapters.lora import LowRankUpdates
from descend.nn.adapters.prefix import PrefixVectors
from descend.nn.adapters.soft_prompt import PromptVectors
from descend.ranges import Depth, Fraction, NonNegative, Width


@dataclass(frozen=True)
class Lora:
    """An update of low rank beside each of the chosen matrices."""

    virtual: ClassVar[int] = 0
    rank: Width = 8
    alpha: NonNegative = 0.0
    """α of the scale α / rank; 0: as large as the rank, so that the scale is 1."""
    dropout: Fraction = 0.0
    targets: tuple[str, ...] = ()
    """Names of linear maps, or how they end (attn.q); none: all of the attention layers."""

    def apply(self, model: Any) -> Adapted:
        """The model, frozen, with the updates."""
        scale = (self.alpha or self.rank) / self.rank
        return adapt(model, LowRankUpdates.make(model, self.targets, self.rank, scale, self.dropout))


@dataclass(frozen=True)
class Bottleneck:
    """A small network after each of the chosen layers."""

    virtual: ClassVar[int] = 0
    size: Width = 16
    activation: str = "relu"
    targets: tuple[str, ...] = SUBLAYERS
    """Names of layers, or how they end."""

    def apply(self, model: Any) -> Adapted:
        """The model, frozen, with the adapters."""
        return adapt(model, BottleneckAdapters.make(model, self.targets, self.size, self.activation))


@dataclass(frozen=True)
class SoftPrompt:
    """Trained vectors in front of the embedded text."""

    tokens: Depth = 20

    @property
    def virtual(self) -> int:
        """Places of the context that it takes."""
        return self.tokens

    def apply(self, model: Any) -> Adapted:
        """The model, frozen, behind the prompt."""
        return adapt(model, PromptVectors.read(model, draw_tokens(model, self.tokens)))


@dataclass(frozen=True)
class Prefix:
    """Trained keys and values in front of the text, in every layer."""

    tokens: Depth = 20

    @property
    def virtual(self) -> int:
        """Places of the context that it takes."""
        return self.tokens

    def apply(self, model: Any) -> Adapted:
        """The model, frozen, behind the prefix."""
        return adapt(model, PrefixVectors.read(model, draw_tokens(model, self.tokens)))


def draw_tokens(model: Any, count: int) -> Tensor:
    """Tokens (count) to begin with; what is left of the context must hold a text."""
    if count >= getattr(model.config, "context", count + 1):
        raise Mistake(f"--adapter.tokens {count} leaves no room in a context of {model.config.context}")
    return torch.randint(model.config.vocab, (count,), device=next(model.parameters()).device)


ADAPTERS = {"lora": Lora, "bottleneck": Bottleneck, "soft-prompt": SoftPrompt, "prefix": Prefix}
"""By the names of the flag --adapter."""
