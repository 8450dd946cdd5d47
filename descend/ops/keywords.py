"""Words as keyword search compares them: runs of letters and digits, in lower case.

"The HTTPServer's read_line()" -> the httpserver s read line
"""

from __future__ import annotations

import re

WORD = re.compile(r"[^\W_]+")


def keywords(text: str) -> list[str]:
    """The words of a text, in their order."""
    return WORD.findall(text.lower())
