"""Exhibits one by one: where one cannot be made, the report says why, and the others are there all the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from descend.contracts import Exhibit
from descend.errors import Mistake, explain_limit

LETTERS = 300  # of a reason


def show_each(makers: Mapping[str, Callable[[], Exhibit | list[Exhibit]]]) -> list[Exhibit]:
    """What each maker makes, in order; for one that fails, a note under its title with the reason."""
    shown: list[Exhibit] = []
    for title, make in makers.items():
        try:
            found = make()
        except Exception as error:  # whatever it is: an image must not cost the run that it shows
            found = Exhibit("missing", title, name_reason(error))
        shown += found if isinstance(found, list) else [found]
    return shown


def name_reason(error: Exception) -> str:
    """An error in one line."""
    said = (str(error).strip().splitlines() or [""])[0]
    ours = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return (explain_limit(error) or (said if isinstance(error, Mistake) else ours))[:LETTERS]
