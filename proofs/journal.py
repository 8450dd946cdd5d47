"""What a long proof has counted so far, part by part, so that an interrupted one goes on where it was.

    journal = Journal("kills", seed=0)
    for name in journal.left(recipes.names()):
        journal.add(name, {"kills": 5, "different": 0})
    record("kills", journal.total(), seed=0)
    journal.close()

A line of `proofs/unfinished/NAME.jsonl` for each part; another seed or other code begins anew.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FOLDER = HERE / "unfinished"


class Journal:
    """The parts that are done, and what was counted in each."""

    def __init__(self, name: str, seed: int, note: str = ""):
        self.path = FOLDER / f"{name}.jsonl"
        head = {"seed": seed, "source": hash_source(), "note": note}
        lines = read_lines(self.path)
        self.done: dict[str, dict[str, int]] = {}
        if lines and lines[0] == head:
            self.done = {line["part"]: line["counts"] for line in lines[1:]}
            self.path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
            print(f"{self.path} has {len(self.done)} parts: going on", flush=True)
        else:
            self.path.parent.mkdir(exist_ok=True)
            self.path.write_text(json.dumps(head) + "\n", encoding="utf-8")

    def left(self, parts: Iterable[str]) -> Iterator[str]:
        """The parts that are not done."""
        return (part for part in parts if part not in self.done)

    def add(self, part: str, counts: Mapping[str, int]) -> None:
        """A part is done."""
        self.done[part] = dict(counts)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"part": part, "counts": counts}) + "\n")

    def total(self) -> Counter[str]:
        """The sum over all parts."""
        total: Counter[str] = Counter()
        for counts in self.done.values():
            total.update(counts)
        return total

    def close(self) -> None:
        """The proof is recorded."""
        self.path.unlink()


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a journal; one that was cut off by a kill is left out."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return found


def hash_source() -> str:
    """A digest of the code that is proven and of the proofs."""
    found = hashlib.blake2b(digest_size=8)
    root = HERE.parent
    for folder in ("descend", "proofs", "tests/faults"):
        for path in sorted((root / folder).rglob("*.py")):
            found.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return found.hexdigest()
