"""Recurrent language modelling recipes: a text read track by track, the state carried from window to window."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from descend.data.streams.shards import process
from descend.data.text.plain import Windows
from descend.data.text.tracks import Tracks
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.language import LanguageRecipe
from descend.kinds.recipe import micro_batch
from descend.models.lstm_lm import RecurrentLM, RecurrentLMConfig
from descend.tasks.language import Language
from descend.tasks.truncated import TruncatedLanguage


@dataclass(frozen=True)
class RecurrentLanguageRecipe(LanguageRecipe):
    """A recurrent language model on plain text, by truncated backpropagation through time."""

    model: Any = field(default_factory=RecurrentLMConfig)

    def build(self) -> Parts:
        loop, parts = self.loop, super().build()
        if process()[1] > 1:
            raise Mistake("the state of each track lives in one process: train a recurrent model without torchrun")
        micro_batch(loop, loop.batch)
        stream: Any = parts.stream
        assert isinstance(stream, Windows)
        assert isinstance(parts.model, RecurrentLM)
        assert isinstance(parts.task, Language)
        tracks = Tracks(stream.tokens, self.model.context, loop.batch, loop.seed, loop.accumulate)
        task = TruncatedLanguage(parts.model, loop.batch, parts.task.bytes_per_token)
        return replace(parts, task=task, stream=tracks)
