"""Tags of words: p(k | word i of the text) = softmax(z_i)_k at the first token of each word.

A text is cut into words and signs ("it works." has three); words that are cut already go to `tag_words`. A text that is
longer than the model's context is tagged piece by piece.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from descend.data.text.tagged import Sentence, read_sentences
from descend.errors import Mistake
from descend.inference.inputs import is_file, read_texts
from descend.inference.trained import BATCH, Trained
from descend.tasks.fine_tune import run_encoder
from descend.text.inputs import Encoded, Inputs
from descend.text.tokenizer import Tokenizer

HEAD = "ForTokenClassification"  # how public names of encoders that tag words end


@dataclass(frozen=True)
class TagAnswer:
    """A text and its words: each with its tag and the tag's probability."""

    input: str
    words: tuple[tuple[str, str, float], ...]
    truth: tuple[str, ...] = ()
    """The tags of the words, where the file has them."""

    def as_json(self, top: int) -> dict[str, Any]:
        """With every word, however many classes are asked for."""
        tags = [{"word": word, "tag": tag, "probability": p} for word, tag, p in self.words]
        return {"input": self.input, "tags": tags} | ({"truth": list(self.truth)} if self.truth else {})

    def as_rows(self) -> list[dict[str, Any]]:
        """The text, its words, and their tags in the same order."""
        words, tags = [word for word, _, _ in self.words], [tag for _, tag, _ in self.words]
        return [{"text": self.input, "words": " ".join(words), "prediction": " ".join(tags)}]

    def compare(self) -> list[tuple[str | float, str | float]]:
        return list(zip((tag for _, tag, _ in self.words), self.truth, strict=True)) if self.truth else []


@dataclass(frozen=True)
class Piece:
    """Tokens that go through the model together, and where its words begin among them."""

    encoded: Encoded
    starts: tuple[int, ...]


@dataclass(frozen=True)
class Tagger:
    """Tags of the words of texts."""

    trained: Trained
    inputs: Inputs
    labels: tuple[str, ...]
    takes = "texts"

    @classmethod
    def read(cls, trained: Trained) -> Tagger:
        """With the tokenizer beside the weights."""
        if not tags_words(trained):
            raise Mistake(f"{trained.folder} holds a {trained.kind}, which does not tag words")
        inputs = Inputs.of(Tokenizer.load(trained.folder), trained.model.longest)
        inputs.tokenizer.check_fits(trained.model.config.vocab)
        return cls(trained, inputs, trained.model.config.labels.names)

    def tag(self, texts: Sequence[str]) -> list[TagAnswer]:
        """The words and signs of each text with their tags."""
        found = self.tag_words([re.findall(r"\w+|[^\w\s]", text) for text in texts])
        return [TagAnswer(text, words) for text, words in zip(texts, found, strict=True)]

    @torch.no_grad()
    def tag_words(self, sentences: Sequence[Sequence[str]]) -> list[tuple[tuple[str, str, float], ...]]:
        """(word, tag, probability) of the words of each sentence."""
        cut = [list(self.cut_pieces(words)) for words in sentences]
        pieces = [piece for some in cut for piece in some]
        answers: list[tuple[str, float]] = []
        for i in range(0, len(pieces), BATCH):
            some = pieces[i : i + BATCH]
            batch = self.inputs.batch([piece.encoded for piece in some])
            given = {name: batch[name].to(self.trained.device) for name in ("x", "mask")}
            p = self.trained.probabilities(run_encoder(self.trained.model, given)).cpu()
            for row, piece in zip(p, some, strict=True):
                best = row[list(piece.starts)].max(dim=-1)
                found = zip(best.indices.tolist(), best.values.tolist(), strict=True)
                answers += [(self.labels[k], share) for k, share in found]
        each = iter(answers)
        return [tuple((word, *next(each)) for word in words) for words in sentences]

    def cut_pieces(self, words: Sequence[str]) -> Iterator[Piece]:
        """A sentence in pieces that the model has room for; a word without a token is read as hidden."""
        room = self.inputs.longest - 2
        tokens: list[int] = []
        starts: list[int] = []
        spelled = [word if i == 0 else f" {word}" for i, word in enumerate(words)]
        for piece in self.inputs.tokenizer.encode_many(spelled):
            piece = (piece or [self.inputs.mask])[:room]
            if len(tokens) + len(piece) > room:
                yield Piece(self.inputs.join(tokens), tuple(starts))
                tokens, starts = [], []
            starts.append(len(tokens) + 1)  # after [CLS]
            tokens += piece
        if starts:
            yield Piece(self.inputs.join(tokens), tuple(starts))

    def predict(self, inputs: Sequence[str]) -> list[TagAnswer]:
        """The same of texts, files of texts, and files of words with their tags as in training."""
        answers: list[TagAnswer] = []
        for given in inputs:
            tagged = self.read_tagged(Path(given)) if is_file(given) else []
            found = self.tag_words([words for _, words, _ in tagged])
            answers += [
                TagAnswer(" ".join(words), each, tuple(tags))
                for (_, words, tags), each in zip(tagged, found, strict=True)
            ] or self.tag(read_texts([given]).texts)
        return answers

    def read_tagged(self, path: Path) -> list[Sentence]:
        """The sentences of a file whose tags the model knows; none where it is a file of texts."""
        try:
            found = list(read_sentences(path))
        except Mistake:
            return []
        return found if {tag for _, _, tags in found for tag in tags} <= set(self.labels) else []


def tags_words(trained: Trained) -> bool:
    """Whether the model is one that tags words."""
    return trained.kind.endswith(HEAD)
