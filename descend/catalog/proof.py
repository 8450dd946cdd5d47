"""What the test suite has proven: one line for each test function and each thing that it proves.

    test                                     system   demand       outcome
    tests/nn/test_gru.py::test_as_in_torch   gru      core         passed
    tests/nn/test_gru.py::test_reset_first   gru      books-form   passed

`tests/conftest.py` keeps `proof.tsv`: a run replaces the lines of the test files that it ran whole, and leaves the
others alone. The cases of a parametrized test are one line, which says "passed" when all of them did. The lines are
sorted and hold no times, so that the file changes only when a proof does, and two branches merge line by line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

PATH = Path(__file__).parent / "proof.tsv"

CORE = "core"  # in the place of a demand: the numbers of the system agree


class Key(NamedTuple):
    """A test function, and one thing that it proves: a demand of a system, or its core."""

    test: str
    system: str
    demand: str = CORE


@dataclass(frozen=True)
class Proof:
    """The tests of one system: those of its core, those of each demand, and those of all these that failed."""

    core: tuple[str, ...] = ()
    demands: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    failed: tuple[str, ...] = ()

    @property
    def tests(self) -> tuple[str, ...]:
        """All tests of the system, each once."""
        return tuple(sorted({*self.core, *(test for tests in self.demands.values() for test in tests)}))

    @property
    def passed(self) -> bool:
        """The system has a test, and every one passed."""
        return bool(self.tests) and not self.failed

    def proves(self, demand: str = CORE) -> bool:
        """The demand (or the core) has a test, and every one of its tests passed."""
        tests = self.core if demand == CORE else self.demands.get(demand, ())
        return bool(tests) and not set(tests) & set(self.failed)


def proofs(path: Path = PATH) -> dict[str, Proof]:
    """slug -> Proof, for every system that has tests."""
    found: dict[str, dict[str, list[str]]] = {}
    failed: dict[str, set[str]] = {}
    for key, passed in sorted(read_record(path).items()):
        found.setdefault(key.system, {}).setdefault(key.demand, []).append(key.test)
        failed.setdefault(key.system, set()).update([] if passed else [key.test])
    return {
        slug: Proof(
            core=tuple(found[slug].get(CORE, ())),
            demands={demand: tuple(tests) for demand, tests in sorted(found[slug].items()) if demand != CORE},
            failed=tuple(sorted(failed[slug])),
        )
        for slug in sorted(found)
    }


def read_record(path: Path = PATH) -> dict[Key, bool]:
    """Every line of the record: what it is about, and whether it passed. Of two lines on one thing, "failed" counts."""
    if not path.exists():
        return {}
    record: dict[Key, bool] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        test, system, demand, outcome = line.split("\t")
        key = Key(test, system, demand)
        record[key] = record.get(key, True) and outcome == "passed"
    return record


def format_record(record: Mapping[Key, bool]) -> str:
    """The record as the text of proof.tsv."""
    return "".join("\t".join((*key, "passed" if passed else "failed")) + "\n" for key, passed in sorted(record.items()))


def merge_record(old: Mapping[Key, bool], new: Mapping[Key, bool | None], files: Iterable[str]) -> dict[Key, bool]:
    """The old record with the lines of `files` (those that were run, and those that are gone) replaced by the new ones.

    None in the new record: every case was skipped, for want of a package or of data. What the old one says then stands.
    """
    replaced = set(files)
    kept = {key: passed for key, passed in old.items() if file_of(key) not in replaced}
    found = {key: old.get(key) if passed is None else passed for key, passed in new.items() if file_of(key) in replaced}
    return kept | {key: passed for key, passed in found.items() if passed is not None}


def file_of(key: Key) -> str:
    """tests/nn/test_gru.py::test_as_in_torch -> tests/nn/test_gru.py"""
    return key.test.partition("::")[0]
