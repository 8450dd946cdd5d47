"""A user's mistake, in one line that names the thing and the fix."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class Mistake(Exception):
    """The user's mistake. The command line prints the message and exits with 2, without a traceback."""


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint for a misspelt name: " Did you mean 'x'?", or nothing when no name is close."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f" Did you mean '{close[0]}'?" if close else ""
