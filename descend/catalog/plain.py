"""What a system is and what it is for, in everyday words: two sentences for a reader who meets it for the first time.

They stand in `spec/plain/FAMILY.tsv`, a line for each system: system, plain. Every system that is built has one.
"""

from __future__ import annotations

import csv
from functools import cache

from descend.catalog.systems import SPEC

LONGEST = 300  # characters: what is read at a glance


@cache
def plain_words() -> dict[str, str]:
    """slug -> the two sentences."""
    found = {}
    for path in sorted((SPEC / "plain").glob("*.tsv")):
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
                found[row["system"]] = row["plain"]
    return found
