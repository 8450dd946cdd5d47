"""Stop strings: text as it comes, up to the first of some strings, which may be spread over many pieces.

The first is the one that is complete first, and the longest of those that end together: so the result does not depend
on how the text was cut. A piece is held back only as long as it could be the beginning of a stop string.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from descend.errors import Mistake


def until(pieces: Iterable[str], stops: Sequence[str]) -> Iterator[str]:
    """The pieces up to the first stop string, which is left out; with no stop string, all of them."""
    held = Held(stops)
    for piece in pieces:
        if shown := held.add(piece):
            yield shown
        if held.met:
            return
    if held.text:
        yield held.text


class Held:
    """The same for pieces that somebody hands in: what may be shown comes back, `text` is held until more is known."""

    def __init__(self, stops: Sequence[str]):
        if "" in stops:
            raise Mistake("a stop string is empty: it would stop before the first word; leave it out")
        self.stops, self.text, self.met = stops, "", False

    def add(self, piece: str) -> str:
        """What may be shown now; once a stop string is `met`, nothing more."""
        if self.met:
            return ""
        whole = self.text + piece
        at = first(whole, self.stops)
        self.met = at is not None
        safe = len(whole) - count_unfinished(whole, self.stops) if at is None else at
        self.text = "" if self.met else whole[safe:]
        return whole[:safe]


def first(text: str, stops: Sequence[str]) -> int | None:
    """Where the stop string begins that is complete first; of two that end together, the longer one."""
    found = [(at + len(stop), at) for stop in stops if (at := text.find(stop)) >= 0]
    return min(found)[1] if found else None


def count_unfinished(text: str, stops: Sequence[str]) -> int:
    """How many characters at the end of the text could begin a stop string."""
    lengths = (n for stop in stops for n in range(1, min(len(stop), len(text) + 1)) if text.endswith(stop[:n]))
    return max(lengths, default=0)
