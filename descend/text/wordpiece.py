"""WordPiece, readable: merge the pair that tells most, and cut a word by the longest piece that fits.

    score(a, b) = count(ab) / (count(a) count(b))            BPE merges by count(ab) alone
    pieces      a piece that continues a word is written ##piece
    encode      the longest known piece at the start of what is left, again and again; a word that cannot be cut so is
                one unknown token

A pair of rare symbols that only occur together has the highest score: of low, lower, lowest WordPiece merges s + t
first (1 / (1·1)), BPE l + o. VOM 7.4.2 names WordPiece without a formula; this is the published one. Equal scores: the
first by the alphabet.

Systems: wordpiece-sentencepiece
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from descend.errors import Mistake
from descend.text.bpe import Pair, merge_pair, pair_counts

GOES_ON = "##"


def symbols(word: str) -> list[str]:
    """The characters; all but the first go on."""
    return [word[0], *(GOES_ON + character for character in word[1:])]


def join(a: str, b: str) -> str:
    """The piece that a and the going-on b make."""
    return a + b.removeprefix(GOES_ON)


def scores(corpus: Sequence[tuple[Sequence[str], int]]) -> dict[Pair, float]:
    """count(ab) / (count(a) count(b)) of every pair of neighbours."""
    single: Counter[str] = Counter()
    for tokens, times in corpus:
        for token in tokens:
            single[token] += times
    return {(a, b): count / (single[a] * single[b]) for (a, b), count in pair_counts(corpus).items()}


def learn(words: Sequence[str], merges: int) -> tuple[list[str], list[Pair]]:
    """The vocabulary (symbols, then merges in their order) and the merges."""
    if not any(words):
        raise Mistake("the text is empty, so there is nothing to learn pieces from; give some words")
    corpus = [(symbols(word), times) for word, times in Counter(words).items() if word]
    known = dict.fromkeys(symbol for tokens, _ in corpus for symbol in tokens)
    learned: list[Pair] = []
    while len(learned) < merges and (found := scores(corpus)):
        best = max(found.values())
        pair = min(p for p, score in found.items() if score == best)
        corpus = [(merge_pair(tokens, pair, join(*pair)), times) for tokens, times in corpus]
        learned.append(pair)
        known[join(*pair)] = None
    return list(known), learned


def split_word(word: str, vocabulary: Collection[str], unknown: str = "<unk>") -> list[str]:
    """The word by its longest known pieces, from left to right; [unknown] if some part has none."""
    pieces: list[str] = []
    start = 0
    while start < len(word):
        mark = GOES_ON if start else ""
        ends = (end for end in range(len(word), start, -1) if mark + word[start:end] in vocabulary)
        end = next(ends, 0)
        if not end:
            return [unknown]
        pieces.append(mark + word[start:end])
        start = end
    return pieces
