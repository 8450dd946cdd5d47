"""A little language whose meanings are known: nouns are sums of features, and each feature has words of its own.

    sentence:   a noun, and around it words of its features and fillers, in any order
    king = royal + male + adult        queen = royal + female + adult        boy = common + male + young …

Vectors learned from such text should show what was planted: nouns of one feature near each other, and analogies.
A second language has words of two senses: "bank" after words of water, or after words of money.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import torch
from torch import Tensor

FEATURES = {
    "royal": "crown throne palace jewel",
    "common": "farm street shop bread",
    "male": "he his him beard",
    "female": "she her hers dress",
    "adult": "work vote marry wise",
    "young": "play toy school small",
}
NOUNS = {
    "king": ("royal", "male", "adult"),
    "queen": ("royal", "female", "adult"),
    "prince": ("royal", "male", "young"),
    "princess": ("royal", "female", "young"),
    "man": ("common", "male", "adult"),
    "woman": ("common", "female", "adult"),
    "boy": ("common", "male", "young"),
    "girl": ("common", "female", "young"),
}
FILLERS = ["the", "and", "then", "near", "again"]
CUES = [text.split() for text in FEATURES.values()]  # features x words
WORDS = [*NOUNS, *(word for cues in CUES for word in cues), *FILLERS]

SENSES = {"water": "river lake boat fish", "money": "loan cash coin debt"}
AMBIGUOUS = "bank"
OPENERS = ["the", "a", "this", "that"]
SENSE_WORDS = [AMBIGUOUS, *(word for text in SENSES.values() for word in text.split()), *OPENERS]


@dataclass(frozen=True)
class ToyCorpus:
    """Numbers of words, and the sentence that each belongs to."""

    words: Tensor
    sentence: Tensor


def nouns_and_features(sentences: int, random: torch.Generator) -> ToyCorpus:
    """Sentences of 6 words: a noun, a word of each of its three features and two fillers, shuffled."""
    cues = torch.tensor([[WORDS.index(word) for word in row] for row in CUES])
    features = torch.tensor([[list(FEATURES).index(f) for f in names] for names in NOUNS.values()])
    fillers = torch.tensor([WORDS.index(word) for word in FILLERS])
    noun = torch.randint(len(NOUNS), (sentences,), generator=random)
    which = torch.randint(cues.shape[1], (sentences, 3), generator=random)
    told = cues[features[noun], which]
    filled = fillers[torch.randint(len(fillers), (sentences, 2), generator=random)]
    rows = torch.cat([noun[:, None], told, filled], dim=1)
    order = torch.rand(rows.shape, generator=random).argsort(dim=1)
    return ToyCorpus(rows.gather(1, order).flatten(), torch.arange(sentences).repeat_interleave(rows.shape[1]))


def quadruples() -> Tensor:
    """All analogies a : b = c : d of the nouns that hold exactly: b − a and d − c change one feature alike (n, 4)."""
    found = []
    names: dict[tuple[str, ...], int] = {features: n for n, features in enumerate(NOUNS.values())}
    for (n, a), (m, b) in permutations(enumerate(NOUNS.values()), 2):
        changed = [k for k in range(3) if a[k] != b[k]]
        if len(changed) != 1:
            continue
        k = changed[0]
        others = [c for c in names if c[k] == a[k] and c != a]
        found += [[n, m, names[c], names[(*c[:k], b[k], *c[k + 1 :])]] for c in others]
    return torch.tensor(found)


def two_senses(sentences: int, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Sentences (n, 6) of one sense each, and the sense (n): an opener, a word of the sense, the ambiguous word, and
    three more words of the sense."""
    sense = torch.randint(len(SENSES), (sentences,), generator=random)
    words = torch.tensor([[SENSE_WORDS.index(word) for word in text.split()] for text in SENSES.values()])
    told = words[sense[:, None], torch.randint(words.shape[1], (sentences, 4), generator=random)]
    opener = SENSE_WORDS.index(OPENERS[0]) + torch.randint(len(OPENERS), (sentences, 1), generator=random)
    middle = torch.full((sentences, 1), SENSE_WORDS.index(AMBIGUOUS))
    return torch.cat([opener, told[:, :1], middle, told[:, 1:]], dim=1), sense
