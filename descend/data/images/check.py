"""Every image file opened and looked at before training starts; what was found is kept for the next start.

A file is known again by path, size and time of change (which no program can set back), so the second start opens only
what is new. What is kept: size in pixels, grey or colour, a digest of the bytes, a fingerprint (`fingerprint`) and a
thumbnail. The first broken file is a mistake that names it, and the others.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from descend.data.images.files import bombs_are_errors, cores, is_grey, open_image, plain, upright
from descend.data.images.fingerprint import SIDE, fingerprints
from descend.data.reading import cache_folder, check_file, show
from descend.errors import Mistake

VERSION = 2
MOST_BYTES = 2**30  # of an image file
TINY = 8
NAMED = 10  # broken files beside the first that a message names
KEYS = ("path", "bytes", "changed", "version")


@dataclass(frozen=True)
class Checked:
    """Facts about n images."""

    height: np.ndarray
    width: np.ndarray
    grey: np.ndarray
    digest: np.ndarray
    """Of the bytes (n, 16)."""
    hash: np.ndarray
    thumb: np.ndarray
    """Colours (n, 8, 8, 3)."""

    def take(self, rows: Any) -> Checked:
        return Checked(*(getattr(self, f.name)[rows] for f in fields(self)))

    @property
    def sizes(self) -> dict[tuple[int, int], int]:
        """How many images there are of each (height, width), the most frequent first."""
        found, counts = np.unique(np.stack([self.height, self.width], 1), axis=0, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        return {(int(found[i][0]), int(found[i][1])): int(counts[i]) for i in order}


def check(paths: list[Path], root: Path) -> Checked:
    """Look at every file that is not known yet; `root` names the set whose knowledge is kept together."""
    stats = [_look_up(path) for path in paths]
    size, changed = np.array([s.st_size for s in stats]), np.array([s.st_ctime_ns for s in stats])
    names = np.array([os.path.abspath(path) for path in paths])
    kept = _read(_place(root))
    known = {key: row for row, key in enumerate(zip(*(kept[k].tolist() for k in KEYS[:3]), strict=True))}
    rows = np.array([known.get(key, -1) for key in zip(names.tolist(), size.tolist(), changed.tolist(), strict=True)])
    missing = np.flatnonzero(rows < 0)
    fresh = _look_at([paths[i] for i in missing])
    found = {}
    for f in fields(Checked):
        new = getattr(fresh, f.name)
        old = kept[f.name][rows] if len(kept["path"]) else np.empty((len(rows), *new.shape[1:]), new.dtype)
        found[f.name] = old
        old[missing] = new
    if len(missing) or len(known) != len(paths):
        _write(_place(root), {"path": names, "bytes": size, "changed": changed, **found})
    return Checked(**found)


def _look_up(path: Path) -> os.stat_result:
    found = check_file(path)
    if found.st_size > MOST_BYTES:
        raise Mistake(
            f"{show(path)} has {found.st_size:,} bytes, more than {MOST_BYTES:,}; make it smaller or remove it"
        )
    return found


def _look_at(paths: list[Path]) -> Checked:
    """All files, in as many threads as there are cores (decoders and digests free Python's lock)."""
    with bombs_are_errors(), ThreadPoolExecutor(cores()) as pool:
        looks = list(pool.map(_look, paths))
    broken = [(path, look) for path, look in zip(paths, looks, strict=True) if isinstance(look, Mistake)]
    if broken:
        others = [show(path) for path, _ in broken[1 : 1 + NAMED]] + ["…"] * (len(broken) > 1 + NAMED)
        more = f" ({len(broken) - 1} more cannot be used: {', '.join(others)})" if others else ""
        raise Mistake(f"{broken[0][1]}{more}")
    good = [look for look in looks if not isinstance(look, Mistake)]
    n = len(good)
    small = np.array([look[3] for look in good], np.uint8).reshape(n, SIDE, SIDE, 3)
    grey = small.astype(np.float64) @ np.array([0.299, 0.587, 0.114])
    return Checked(
        np.array([look[0][0] for look in good], np.int64),
        np.array([look[0][1] for look in good], np.int64),
        np.array([look[1] for look in good], bool),
        np.frombuffer(b"".join(look[2] for look in good), np.uint8).reshape(n, 16),
        fingerprints(grey) if n else np.empty(0, np.uint64),
        np.rint(small.reshape(n, TINY, SIDE // TINY, TINY, SIDE // TINY, 3).mean((2, 4))).astype(np.uint8),
    )


def _look(path: Path) -> tuple[tuple[int, int], bool, bytes, np.ndarray] | Mistake:
    """((height, width), grey, digest, 32 × 32 colours) of a file, or what is wrong with it."""
    from PIL import Image

    try:
        data = path.read_bytes()
        with open_image(path, data) as image:
            width, height = image.size
            if image.getexif().get(0x0112, 1) >= 5:  # an orientation that lies on its side
                width, height = height, width
            grey = is_grey(image)
            image.draft(None, (2 * SIDE, 2 * SIDE))
            small = plain(upright(image), 3).resize((SIDE, SIDE), Image.Resampling.BOX)
            return (height, width), grey, hashlib.blake2b(data, digest_size=16).digest(), np.asarray(small)
    except OSError as error:
        return Mistake(f"{show(path)} cannot be read: {error.strerror}; replace or remove it")
    except Mistake as mistake:
        return mistake


def _place(root: Path) -> Path:
    """The file in the user's cache folder that keeps what is known of the images below `root`."""
    name = hashlib.blake2b(os.fsencode(os.path.abspath(root)), digest_size=12).hexdigest()
    return (cache_folder() or Path(os.devnull)) / "images" / f"{name}.npz"  # without a home folder nothing is kept


def _read(path: Path) -> dict[str, np.ndarray]:
    """What was kept; nothing when there is nothing, or nothing that can be trusted."""
    names = [*KEYS[:3], *(f.name for f in fields(Checked))]
    try:
        with np.load(path, allow_pickle=False) as kept:
            if int(kept["version"]) == VERSION:
                found = {name: kept[name] for name in names}
                if len({len(array) for array in found.values()}) == 1:
                    return found
    except Exception:  # a damaged archive can raise anything
        pass
    return {name: np.empty(0) for name in names}


def _write(path: Path, found: dict[str, np.ndarray]) -> None:
    """Keep it; a folder that cannot be written costs only the time of the next check."""
    aside = path.with_name(f"{path.stem}.{os.getpid()}.npz")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(aside, allow_pickle=False, version=np.array(VERSION), **found)
        aside.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            aside.unlink()
