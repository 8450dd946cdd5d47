"""Text to numbers in three stages: standardize, tokenize, encode (DLD 6.2).

    "The cat's hat"  ->  "the cats hat"  ->  the | cats | hat  ->  17, 4, 9

Learned from a corpus, then the same for every new text; a word that the corpus does not have becomes `<unk>`. Every
step is a function that can be left out or put in. DLD 6.5: lower case and split on white space to classify, byte pair
encoding (`Tokenizer`) to generate.

Systems: text-vectorization-pipeline
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from torch import Tensor

from descend.text.standardize import lower_case
from descend.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class Vectorizer:
    """Steps on the text, the cut into tokens, steps on the tokens, and the vocabulary."""

    of_text: tuple[Callable[[str], str], ...] = (lower_case,)
    cut: Callable[[str], list[str]] = str.split
    of_tokens: tuple[Callable[[Sequence[str]], list[str]], ...] = ()
    vocabulary: Vocabulary = field(default_factory=Vocabulary)

    def standardize(self, text: str) -> str:
        for step in self.of_text:
            text = step(text)
        return text

    def tokens(self, text: str) -> list[str]:
        tokens = self.cut(self.standardize(text))
        for step in self.of_tokens:
            tokens = step(tokens)
        return tokens

    def learn(self, corpus: Iterable[str], most: int = 0, least: int = 1) -> Vectorizer:
        """The same steps with the vocabulary of a corpus."""
        found = Vocabulary.learn((token for text in corpus for token in self.tokens(text)), most, least)
        return replace(self, vocabulary=found)

    def __call__(self, text: str) -> Tensor:
        """Numbers (t)."""
        return self.vocabulary.encode(self.tokens(text))
