"""Stop strings: text as it comes, up to the first of some strings, which may be spread over many pieces.

The first is the one that is complete first, and the longest of those that end together: so the result does not depend
on how the text was cut. A piece is held back only as long as it could be the beginning of a stop string.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from descend.errors import Mistake


def until(pieces: Iterable[str], stops: Sequence[str]) -> Iterator[str]:
    """The pieces up to the first stop string, which is left out; with no stop string, all of them."""
    if "" in stops:
        raise Mistake("a stop string is empty: it would stop before the first word; leave it out")
    held = ""
    for piece in pieces:
        held += piece
        if (at := first(held, stops)) is not None:
            if at:
                yield held[:at]
            return
        safe = len(held) - count_unfinished(held, stops)
        if safe:
            yield held[:safe]
            held = held[safe:]
    if held:
        yield held


def first(text: str, stops: Sequence[str]) -> int | None:
    """Where the stop string begins that is complete first; of two that end together, the longer one."""
    found = [(at + len(stop), at) for stop in stops if (at := text.find(stop)) >= 0]
    return min(found)[1] if found else None


def count_unfinished(text: str, stops: Sequence[str]) -> int:
    """How many characters at the end of the text could begin a stop string."""
    lengths = (n for stop in stops for n in range(1, min(len(stop), len(text) + 1)) if text.endswith(stop[:n]))
    return max(lengths, default=0)
