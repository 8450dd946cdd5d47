"""Byte pair encoding, as the books tell it: merge the most frequent pair of neighbours, again and again.

    start     every word as its characters; the vocabulary is the characters that occur
    repeat    count the pairs (a, b) of neighbours in all words, weighted by how often each word occurs
              (a, b) ← the most frequent pair;  every a b becomes the one token ab, which joins the vocabulary
    encode    the merges in the order in which they were learned
    size      |vocabulary| = characters + merges

Words are never joined. DLN bars a pair whose second token starts with white space; the same is to begin a new word at
every white space (`words_with_space`), so that a token has white space at its start or nowhere. VOM gives words
without spaces, each counted once.

Equal counts need a rule, and the books have different ones: the pair that occurs first (DLN, `first_occurrence`), or
the first by the alphabet (VOM, `alphabetical`). In "Peter Piper picked a peck of pickled peppers" both (p, e) and
(blank, p) occur 4 times, and only the first rule gives DLN's merges pe, ck.

Errata: VOM 7.4.1 goes on from low, lower, lowest with er, es, est. By the rule the third merge is (low, e) with count
2, and er and est never arise. DLD 11.5 cuts "can't" into can | t: the apostrophe is lost, so the tokens do not give the
text back; here they always do.

This trainer counts anew after every merge. `Tokenizer.learn(text, "plain-bpe")` is the fast one.

Systems: bpe
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from descend.errors import Mistake

Pair = tuple[str, str]
Tie = Callable[[Sequence[Pair]], Pair]
"""Chooses among pairs of equal count, which come in the order of their first occurrence."""


def first_occurrence(pairs: Sequence[Pair]) -> Pair:
    """DLN: the pair that comes first in the text."""
    return pairs[0]


def alphabetical(pairs: Sequence[Pair]) -> Pair:
    """VOM: the first by the alphabet."""
    return min(pairs)


def words_with_space(text: str) -> list[str]:
    """The text in parts; every white space begins a new one."""
    return re.findall(r"\s?\S+|\s", text)


def pair_counts(words: Iterable[tuple[Sequence[str], int]]) -> Counter[Pair]:
    """How often each pair of neighbours occurs, in the order of first occurrence."""
    counts: Counter[Pair] = Counter()
    for tokens, times in words:
        for pair in pairwise(tokens):
            counts[pair] += times
    return counts


def top_pairs(counts: Counter[Pair]) -> list[Pair]:
    """The pairs of the highest count, in the order of first occurrence."""
    most = max(counts.values())
    return [pair for pair, count in counts.items() if count == most]


def merge_pair(tokens: Sequence[str], pair: Pair, joined: str) -> list[str]:
    """Every a b in the tokens as one token, from left to right."""
    found: list[str] = []
    for token in tokens:
        if found and (found[-1], token) == pair:
            found[-1] = joined
        else:
            found.append(token)
    return found


@dataclass(frozen=True)
class BPE:
    """Characters in the order of their first occurrence, the merges in the order learned, and each merge's count."""

    characters: tuple[str, ...]
    merges: tuple[Pair, ...] = ()
    counts: tuple[int, ...] = ()

    @classmethod
    def learn(cls, words: Sequence[str], merges: int, tie: Tie = first_occurrence) -> BPE:
        """At most this many merges; fewer when every word has become one token."""
        if not any(words):
            raise Mistake("the text is empty, so there is nothing to learn merges from; give some words")
        corpus = [(list(word), times) for word, times in Counter(words).items()]
        learned: list[Pair] = []
        how_often: list[int] = []
        while len(learned) < merges and (counts := pair_counts(corpus)):
            pair = tie(top_pairs(counts))
            corpus = [(merge_pair(tokens, pair, "".join(pair)), times) for tokens, times in corpus]
            learned.append(pair)
            how_often.append(counts[pair])
        return cls(tuple(dict.fromkeys("".join(words))), tuple(learned), tuple(how_often))

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The characters and all merges; two merges may make the same token, which then stands here once."""
        return tuple(dict.fromkeys([*self.characters, *map("".join, self.merges)]))

    def cut(self, word: str) -> list[str]:
        """The tokens of one word: every merge in turn."""
        strange = next((i for i, character in enumerate(word) if character not in self.characters), None)
        if strange is not None:
            raise Mistake(
                f"character {strange}, {word[strange]!r}, was not in the training text, so no token has it; "
                f"train on text that has it, or use byte-level BPE, which knows every character"
            )
        tokens = list(word)
        for pair in self.merges:
            tokens = merge_pair(tokens, pair, "".join(pair))
        return tokens

    def tokens(self, text: str) -> list[str]:
        """The tokens of a text; joined they are the text."""
        return [token for word in words_with_space(text) for token in self.cut(word)]

    def encode(self, text: str) -> list[int]:
        numbers = {token: n for n, token in enumerate(self.vocabulary)}
        return [numbers[token] for token in self.tokens(text)]

    def decode(self, ids: Sequence[int]) -> str:
        vocabulary = self.vocabulary
        strange = next((i for i in ids if not 0 <= i < len(vocabulary)), None)
        if strange is not None:
            raise Mistake(f"token {strange} is unknown: the tokens are 0..{len(vocabulary) - 1}")
        return "".join(vocabulary[i] for i in ids)
