"""Whether a tokenized corpus is what was written, and of the text that there is now.

    own files      every byte is digested when the corpus is opened: 100 MB in about 0.1 s
    sources        known by place on disk and time of change, which no program can set back; where these differ (the
                   file was replaced, copied or renamed), by the digest of their content

Of several processes that want the same corpus one makes it and the others wait.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import xxhash

from descend.data.reading import check_file, digest, show
from descend.errors import Mistake
from descend.files import entries, field, items, read_json, write_json

HEADER = "corpus.json"
Stamp = list[int]


def stamp(source: Path) -> Stamp:
    """Which file this is, and when it was last changed in any way (content, name, owner, date)."""
    found = check_file(source)
    return [found.st_dev, found.st_ino, found.st_size, found.st_ctime_ns]


def source_entry(source: Path, content: str, seen: Stamp) -> dict[str, Any]:
    """What the header says of a source."""
    return {"name": show(source.name), "digest": content, "stamp": seen}


def write_header(folder: Path, header: dict[str, Any], version: int) -> None:
    """Add the digests of all files of the folder, and that of the header itself."""
    made = {path.name: digest(path) for path in sorted(folder.iterdir()) if path.name != HEADER}
    content = {**header, "version": version, "files": made}
    write_json(folder / HEADER, {**content, "digest": digest_value(content)})


def digest_value(value: object) -> str:
    return xxhash.xxh3_128_hexdigest(json.dumps(value, sort_keys=True).encode())


def find_damage(folder: Path, sources: list[Path], version: int) -> str:
    """What keeps the folder from being used; nothing when all is well."""
    path = folder / HEADER
    try:
        header = read_json(path)
        content = {name: value for name, value in header.items() if name != "digest"}
        if field(header, "version", int, path) != version or digest_value(content) != header.get("digest"):
            return f"{path} was altered"
        for name, expected in entries(header, "files", str, path).items():
            if digest(folder / name) != expected:
                return f"{folder / name} does not have its checksum: it was altered"
        listed = items(header, "sources", dict, path)
        if len(listed) != len(sources):
            return f"{path} lists other sources"
        new = [find_change(source, entry) for source, entry in zip(sources, listed, strict=True)]
    except Mistake as mistake:
        return str(mistake)
    if changed := [source for source, change in zip(sources, new, strict=True) if change is None]:
        return f"{show(changed[0])} is not the text that {folder} was made of, though size and date are the same"
    if new != [entry["stamp"] for entry in listed]:
        content["sources"] = [{**entry, "stamp": now} for entry, now in zip(listed, new, strict=True)]
        with contextlib.suppress(OSError):  # another's cache: the content is compared again the next time
            write_json(path, {**content, "digest": digest_value(content)})
    return ""


def find_change(source: Path, entry: dict[str, Any]) -> Stamp | None:
    """The source's stamp now, if its content is still what the entry says; else None."""
    now = stamp(source)
    return now if now == entry.get("stamp") or digest(source) == entry.get("digest") else None


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time; where the file system cannot lock, all at once."""
    import fcntl  # here, since not every system has it

    with path.open("a") as file:
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
