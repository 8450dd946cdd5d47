"""Tables in plain text: aligned columns without frames, to be read, piped and cut. Colour only in a terminal."""

from __future__ import annotations

import os
import sys
from typing import Any

COLOURS = {
    "finished": "32",
    "running": "34",
    "interrupted": "33",
    "failed": "31",
    "damaged": "31",
    "supported": "32",
    "refuted": "31",
    "open": "33",
    "mixed": "33",
}


def format_table(columns: list[str], rows: list[list[Any]]) -> str:
    """Numbers to the right, words to the left; a title longer than its column stands on several lines."""
    cells = [[format_cell(value) for value in row] for row in rows]
    right = [all(isinstance(row[j], int | float) for row in rows) for j in range(len(columns))]
    widths = [max(map(len, [*title.split(), *(row[j] for row in cells)])) for j, title in enumerate(columns)]
    titles = [fold_title(title, width) for title, width in zip(columns, widths, strict=True)]
    height = max(map(len, titles))
    heads = [[""] * (height - len(title)) + title for title in titles]
    lines = [[head[i] for head in heads] for i in range(height)]
    placed = [
        "  ".join(
            f"{cell:>{w}}" if r else f"{cell:<{w}}" for cell, w, r in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in [*lines, *cells]
    ]
    return "\n".join([*(shade_words(line, "1") for line in placed[:height]), *map(paint_state, placed[height:])])


def fold_title(title: str, width: int) -> list[str]:
    """The words of a title on as few lines of that width as they need."""
    lines = [""]
    for word in title.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def format_cell(value: Any) -> str:
    """A value with four significant digits; nothing for None."""
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def paint_state(line: str) -> str:
    """A line whose words of state are coloured."""
    for word, colour in COLOURS.items():
        if line.endswith(word):
            return line.removesuffix(word) + shade_words(word, colour)
    return line


def shade_words(words: str, code: str) -> str:
    """The words in a colour, if the output is a terminal that wants it."""
    return f"\x1b[{code}m{words}\x1b[0m" if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else words
