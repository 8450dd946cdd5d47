"""Blanks: p(w | the text around it) at each [MASK] of a text, by a masked language model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from descend.errors import Mistake
from descend.inference.answers import Answer
from descend.inference.inputs import read_texts
from descend.inference.trained import Trained
from descend.kinds.text_columns import read_run_columns
from descend.sampling.fill import fill, place_blanks
from descend.text.inputs import NAMES, Inputs
from descend.text.tokenizer import Tokenizer

HEAD = "ForMaskedLM"  # how public names of encoders that fill in blanks end
BLANK = re.compile("|".join(map(re.escape, NAMES["mask"])))
WORDS = 100  # the most likely ones of each blank


@dataclass(frozen=True)
class BlankFiller:
    """The words that fit into the blanks of texts."""

    trained: Trained
    inputs: Inputs
    takes = "texts with [MASK]"

    @classmethod
    def read(cls, trained: Trained) -> BlankFiller:
        """With the tokenizer beside the weights."""
        if not fills_blanks(trained):
            raise Mistake(f"{trained.folder} holds a {trained.kind}, which does not fill in blanks")
        inputs = Inputs.of(Tokenizer.load(trained.folder), trained.model.longest)
        inputs.tokenizer.check_fits(trained.model.config.vocab)
        return cls(trained, inputs)

    def fill_text(self, text: str) -> list[Answer]:
        """The most likely tokens of each blank; of a long text only the part around its first blank is read."""
        parts = BLANK.split(text)
        if len(parts) < 2:
            raise Mistake(f"{text!r} has no blank; write [MASK] where a word is missing")
        encode, inputs = self.inputs.tokenizer.encode, self.inputs
        pieces = [encode(part.rstrip()) for part in parts[:-1]] + [encode(parts[-1])]
        tokens = inputs.join(place_blanks(pieces, inputs.mask, inputs.longest - 2)).tokens
        found = fill(self.trained.model, torch.tensor(tokens, device=self.trained.device), inputs.mask, WORDS)
        answers = []
        for number, (ids, shares) in enumerate(zip(found.tokens.tolist(), found.probabilities.tolist(), strict=True)):
            words = [inputs.tokenizer.decode([token]).strip() for token in ids]
            named = text if len(found.tokens) == 1 else f"{text} (blank {number + 1})"
            answers.append(Answer(named, tuple(zip(words, shares, strict=True))))
        return answers

    def predict(self, inputs: Sequence[str]) -> list[Answer]:
        """The blanks of texts and of files of texts."""
        given = read_texts(inputs, read_run_columns(self.trained.folder))
        found = zip(given.texts, given.records, strict=True)
        return [replace(answer, record=record) for text, record in found for answer in self.fill_text(text)]


def fills_blanks(trained: Trained) -> bool:
    """Whether the model is one that fills in blanks."""
    return trained.kind.endswith(HEAD)
