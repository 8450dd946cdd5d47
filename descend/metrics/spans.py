"""How good spans are: of answers in a text, and of named things in tagged sentences.

    answer      exact = [both ends are right]     F1 = 2 o / (m + n),  o: tokens in both spans, m and n: their lengths
    things      F1 = 2 P R / (P + R) over all sentences,  P = right / found,  R = right / there
                a thing is right when its first token, its last token and its kind are

Tags are B-kind (the first token), I-kind (the others) and O. An I without a B before it begins a thing, as in the
script of CoNLL-2003.

Systems: encoder-fine-tuning-heads
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor


def exact(found: Tensor, true: Tensor) -> Tensor:
    """1 where both ends are right, else 0: spans (b, 2) of first and last position -> (b)"""
    return (found == true).all(dim=-1).float()


def overlap_f1(found: Tensor, true: Tensor) -> Tensor:
    """F1 of the tokens that two spans share: (b, 2), (b, 2) -> (b)"""
    first, last = Tensor.maximum(found[:, 0], true[:, 0]), Tensor.minimum(found[:, 1], true[:, 1])
    both = (last - first + 1).clamp(min=0)
    return 2 * both / (found[:, 1] - found[:, 0] + true[:, 1] - true[:, 0] + 2)


def things(tags: Sequence[str]) -> set[tuple[int, int, str]]:
    """First token, last token and kind of every thing in a tagged sentence."""
    found: set[tuple[int, int, str]] = set()
    first, kind = 0, ""
    for i, tag in enumerate([*tags, "O"]):
        place, _, name = tag.partition("-")
        if kind and (place != "I" or name != kind):
            found.add((first, i - 1, kind))
            kind = ""
        if place != "O" and not kind:
            first, kind = i, name
    return found


def thing_f1(found: Sequence[Sequence[str]], true: Sequence[Sequence[str]]) -> float:
    """F1 over the things of all sentences; 0 where none is right."""
    pairs = [(things(a), things(b)) for a, b in zip(found, true, strict=True)]
    right = sum(len(a & b) for a, b in pairs)
    return 2 * right / max(sum(len(a) + len(b) for a, b in pairs), 1)
