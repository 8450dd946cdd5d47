"""python -m proofs.fuzz_files [CASES] [SEED]: data files damaged in every way, each read by its reader.

A case is a reader, its valid files, and one to three damages. Whatever is done to the files, the reader either reads
them or raises a `Mistake` of one line, within `PATIENCE` seconds. `run` counts the outcomes; everything else (another
exception, a hang) is listed with the damages that led to it.
"""

from __future__ import annotations

import gzip
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from descend.errors import Mistake
from proofs.journal import Journal
from proofs.reliability import record
from proofs.valid_files import READERS, Reader

WHOLE, PART = 5000, 500  # cases of a whole proof; those with one seed, which are not read again after an interruption
PATIENCE = 10.0  # seconds of the processor
SNIPPETS = [
    b"\0", b"\xff", b"\xef\xbb\xbf", b'"', b"\r", b"\r\n", b"\n\n", b"\t", b",", b"{", b"[" * 500, b"9" * 5000, b"nan",
    b"-1", b"1e999", b"\\ud800", b"\xed\xa0\x80", b"x" * 140_000, b"null", b"true", b"../", b"\x1f\x8b", b"\xff" * 8,
    b"\x80\x00\x00\x00", b"2024-13-45", b"1_0", b"\xe2\x80\xa8", b"\x1c",
]  # fmt: skip
WORDS = ["", "null", "true", "[]", "{}", "-1", "1e400", '"\\ud800"', "9" * 400]


@dataclass(frozen=True)
class Damage:
    """What is done to one file: `how` names the harm, the numbers say where and with what."""

    how: str
    file: int
    at: float
    more: int

    def __call__(self, folder: Path) -> None:
        """Do it; a file that an earlier damage took away stays away."""
        files = sorted(p for p in folder.rglob("*") if p.is_file() and not p.is_symlink())
        if files:
            HARMS[self.how](files[self.file % len(files)], self.at, self.more)


@dataclass
class Outcomes:
    """How often each outcome came, and an example of each that must not come."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: dict[str, str] = field(default_factory=dict)
    slowest: float = 0.0


def edit(change: Callable[[bytes, int, int], bytes]) -> Callable[[Path, float, int], None]:
    """A harm that changes a file's bytes from a place on."""

    def harm(path: Path, at: float, more: int) -> None:
        data = path.read_bytes()
        path.write_bytes(change(data, int(at * len(data)), more))

    return harm


def replace(make: Callable[[Path], None]) -> Callable[[Path, float, int], None]:
    """A harm that puts something else in a file's place."""

    def harm(path: Path, at: float, more: int) -> None:
        path.unlink()
        make(path)

    return harm


def rename(path: Path, at: float, more: int) -> None:
    """Bytes that are not UTF-8 in the name."""
    path.rename(os.fsdecode(os.fsencode(path.parent / path.stem) + b"\xe9" + os.fsencode(path.suffix)))


def bomb(path: Path) -> None:
    """A gzip file that unpacks to 1,000 times its size; most readers see only bytes that are not theirs."""
    path.write_bytes(gzip.compress(bytes(2**22), mtime=0) * 64)


HARMS: dict[str, Callable[[Path, float, int], None]] = {
    "flip": edit(lambda d, i, m: d[:i] + bytes([d[i] ^ (m % 255 + 1)]) + d[i + 1 :] if i < len(d) else d),
    "cut": edit(lambda d, i, m: d[:i]),
    "remove": edit(lambda d, i, m: d[:i] + d[i + m % 40 :]),
    "insert": edit(lambda d, i, m: d[:i] + SNIPPETS[m % len(SNIPPETS)] + d[i:]),
    "overwrite": edit(lambda d, i, m: d[:i] + SNIPPETS[m % len(SNIPPETS)] + d[i + len(SNIPPETS[m % len(SNIPPETS)]) :]),
    "word": edit(lambda d, i, m: d[: d.rfind(b" ", 0, i) + 1] + WORDS[m % len(WORDS)].encode() + d[i:]),
    "header": edit(lambda d, i, m: d[: m % 20] + (m * 2654435761).to_bytes(8, "big")[-4:] + d[m % 20 + 4 :]),
    "twice": edit(lambda d, i, m: d + d),
    "line ends": edit(lambda d, i, m: d.replace(b"\n", (b"\r", b"\r\n", b"\n\r")[m % 3])),
    "pack": edit(lambda d, i, m: gzip.compress(d, mtime=0)),
    "reverse": edit(lambda d, i, m: d[::-1]),
    "empty": edit(lambda d, i, m: b""),
    "missing": lambda path, at, more: path.unlink(),
    "folder": replace(lambda path: path.mkdir()),
    "pipe": replace(lambda path: os.mkfifo(path)),
    "device": replace(lambda path: path.symlink_to("/dev/zero")),
    "link to nowhere": replace(lambda path: path.symlink_to("nowhere")),
    "link to itself": replace(lambda path: path.symlink_to(path.name)),
    "link to its folder": replace(lambda path: path.symlink_to(".")),
    "bomb": replace(bomb),
    "rename": rename,
}
DAMAGES = st.builds(
    Damage, st.sampled_from(sorted(HARMS)), st.integers(0, 40), st.floats(0, 1), st.integers(0, 2**31 - 1)
)
CASES = st.tuples(st.sampled_from(sorted(READERS)), st.lists(DAMAGES, min_size=1, max_size=3))


class Hang(Exception):
    """A reader took longer than `PATIENCE`."""


@contextmanager
def patience() -> Iterator[None]:
    """Inside, what takes too long is interrupted."""

    def stop(*_: object) -> None:
        raise Hang

    before = {kind: signal.signal(kind, stop) for kind in (signal.SIGALRM, signal.SIGPROF)}
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    signal.setitimer(signal.ITIMER_REAL, 6 * PATIENCE)  # what only waits uses no processor
    try:
        yield
    finally:
        for timer in (signal.ITIMER_REAL, signal.ITIMER_PROF):
            signal.setitimer(timer, 0)
        for kind, handler in before.items():
            signal.signal(kind, handler)


def outcome(reader: Reader, folder: Path) -> str:
    """read, mistake, or what must not come, with the place it came from."""
    try:
        with patience(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reader.read(folder)
    except Mistake as mistake:
        return "mistake" if "\n" not in str(mistake) else f"a mistake of several lines: {str(mistake)!r}"
    except Hang:
        return "hang"
    except BaseException as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "descend" in f.filename]
        place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
        return f"{type(error).__name__} at {place}"
    return "read"


def examine(case: tuple[str, list[Damage]], valid: Path, scratch: Path, found: Outcomes) -> str:
    """Damage a copy of the reader's files, read them, and count what came of it."""
    name, damages = case
    folder = scratch / "case"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(valid / name, folder)
    for damage in damages:
        damage(folder)
    began = time.process_time()
    result = outcome(READERS[name], folder)
    found.slowest = max(found.slowest, time.process_time() - began)
    found.counts[result] += 1
    if result not in ("read", "mistake"):
        found.wrong.setdefault(result, f"{name}: {damages}")
    return result


def run(cases: int, number: int, quiet: bool = True) -> Outcomes:
    """This many cases, the same ones for a seed."""
    found = Outcomes()
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["XDG_CACHE_HOME"] = scratch + "/cache"
        valid = Path(scratch) / "valid"
        for name, reader in READERS.items():
            (valid / name).mkdir(parents=True)
            reader.write(valid / name)
            reader.read(valid / name)

        @seed(number)
        @settings(
            max_examples=cases, deadline=None, database=None, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(CASES)
        def every(case: tuple[str, list[Damage]]) -> None:
            examine(case, valid, Path(scratch), found)

        with _quiet() if quiet else _loud():
            every()
    return found


@contextmanager
def _loud() -> Iterator[None]:
    yield


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what readers say while they put things right."""
    before, sys.stderr = sys.stderr, open(os.devnull, "w")  # noqa: SIM115
    try:
        yield
    finally:
        sys.stderr.close()
        sys.stderr = before


def count_cases(cases: int, number: int) -> dict[str, int]:
    """So many cases with one seed; what went wrong is printed with an example."""
    found = run(cases, number)
    for what, example in found.wrong.items():
        print(f"seed {number}, {what}: {example}", flush=True)
    counts = {"cases": found.counts.total(), "read": found.counts["read"], "refused": found.counts["mistake"]}
    hangs = found.counts["hang"]
    return {**counts, "hangs": hangs, "tracebacks": found.counts.total() - sum(list(counts.values())[1:]) - hangs}


def main() -> int:
    wanted, chosen = (int(sys.argv[i]) if len(sys.argv) > i else default for i, default in ((1, WHOLE), (2, 0)))
    if wanted < WHOLE:  # a part is shown, not recorded
        counts = count_cases(wanted, chosen)
        print(f"seed {chosen}: {counts}")
        return min(1, counts["hangs"] + counts["tracebacks"])
    journal = Journal("fuzz_files", chosen, str(wanted))
    first = {str(start): start for start in range(0, wanted, PART)}
    for part in journal.left(first):  # seeds 1000 * SEED, 1000 * SEED + 1, ..
        journal.add(part, count_cases(min(PART, wanted - first[part]), 1000 * chosen + first[part] // PART))
    held = record("fuzz_files", journal.total(), chosen)
    journal.close()
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
