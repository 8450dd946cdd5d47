"""Recurrent language modelling recipes: a text read track by track, the state carried from window to window."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from descend.data.streams.shards import process
from descend.data.text.plain import Windows
from descend.data.text.tracks import Tracks, count_tracks
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.language import LanguageRecipe
from descend.kinds.recipe import describe_batch, fit_batch, micro_batch
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
        stream: Any = parts.stream
        assert isinstance(stream, Windows)
        assert isinstance(parts.model, RecurrentLM)
        assert isinstance(parts.task, Language)
        context = self.model.context
        batch = fit_batch(loop, max(1, count_tracks(len(stream.tokens), context)))
        micro_batch(loop, batch)
        facts = parts.facts | describe_batch(loop, batch)
        return replace(
            parts,
            task=TruncatedLanguage(parts.model, batch, parts.task.bytes_per_token),
            stream=Tracks(stream.tokens, context, batch, loop.seed, loop.accumulate),
            units_per_batch=batch * context,
            facts=facts,
        )
