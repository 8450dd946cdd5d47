"""A user's mistake, in one line that names the thing and the fix; so too where the machine comes to its limits."""

from __future__ import annotations

import difflib
import errno
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

FIXES = {
    errno.ENOSPC: "free space and give the command again; a run goes on with: descend resume RUN",
    errno.EDQUOT: "free some of your quota and give the command again; a run goes on with: descend resume RUN",
    errno.EACCES: "change its owner or mode, or choose another folder",
    errno.EPERM: "change its owner or mode, or choose another folder",
    errno.EROFS: "choose a folder of another file system",
    errno.EIO: "the disk or the network fails; see the system's log (dmesg)",
    errno.EMFILE: "allow more open files: ulimit -n 4096",
    errno.ENAMETOOLONG: "give a shorter name",
}
MEMORY = "lower --batch or the model's sizes, or raise --accumulate; descend plan RECIPE tells what it needs"
LONGEST = 1000  # characters of a message
NO_MEMORY = ("can't allocate memory", "out of memory", "bad_alloc", "Storage size calculation overflowed")


class Mistake(Exception):
    """The user's mistake. The command line prints the message and exits with 2, without a traceback."""


def as_one_line(text: str) -> str:
    """A message as one line: spaces for line ends, control characters spelled out, of a long one only both ends."""
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}"
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(text.split()))


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint for a misspelt name: " Did you mean 'x'?", or nothing when no name is close."""
    if len(word) > LONGEST:
        return ""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f" Did you mean '{close[0]}'?" if close else ""


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Inside, an error of the system that names no file (a write, a sync) gets this one's name."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise


def explain_limit(error: Exception) -> str:
    """What the machine lacks, and the fix, in one line; nothing where the error is ours."""
    if isinstance(error, OSError) and error.errno is not None:
        where = f"{error.filename}: " if error.filename is not None else "the output cannot be written: "
        fix = FIXES.get(error.errno)
        return f"{where}{(error.strerror or str(error)).lower()}" + (f"; {fix}" if fix else "")
    if isinstance(error, MemoryError) or any(words in str(error) for words in NO_MEMORY):
        return f"out of memory{_find_amount(str(error))}; {MEMORY}"
    if "DataLoader worker" in str(error):
        why = "it was killed" if "killed by signal" in str(error) else "it ended"
        return (
            f"a process that loads data is gone ({why}; memory may be short): lower --data.workers; "
            f"a run goes on with: descend resume RUN"
        )
    if "can't start new thread" in str(error):
        return "the system allows no more threads; lower --threads, or raise ulimit -u"
    return ""


def _find_amount(text: str) -> str:
    """How much was asked for, where the error tells: torch in bytes, numpy and CUDA in GiB."""
    if found := re.search(r"allocate (\d+) bytes", text):
        return f": {int(found[1]) / 2**30:,.1f} GiB more were needed"
    found = re.search(r"allocate ([\d.,]+ [KMGTPE]iB)", text)
    return f": {found[1]} more were needed" if found else ""
