"""Facts about a set of images before training: classes, sizes, and duplicate images.

An image that lies in two parts (or a near copy of it) makes the validation or test figure better than the truth: such
pairs are named as leaks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
import xxhash
from torch import Tensor

from descend.data.images.check import Checked
from descend.data.images.fingerprint import near, same_bytes
from descend.data.images.lazy import Bytes
from descend.data.images.listing import Listing
from descend.data.streams.splits import describe_leaks

SHOWN = 3  # examples that a fact names
CLASSES = 12  # classes that are listed one by one


def balance(y: Tensor, labels: tuple[str, ...]) -> dict[str, Any]:
    """Images of each class, and how many times the largest is the smallest."""
    counts = torch.bincount(y, minlength=len(labels)).tolist()
    if len(labels) <= CLASSES:
        told = ", ".join(f"{name} {count:,}" for name, count in zip(labels, counts, strict=True))
    else:
        order = sorted(range(len(labels)), key=lambda k: counts[k])
        told = f"from {counts[order[0]]:,} ({labels[order[0]]}) to {counts[order[-1]]:,} ({labels[order[-1]]})"
    ratio = max(counts) / min(counts) if min(counts) else float("inf")
    return {"images per class": told, "imbalance": f"{ratio:.3g} : 1"}


def facts(listing: Listing, checked: Checked) -> dict[str, Any]:
    """Classes, sizes, duplicates, leaks, and files that were left out."""
    found = balance(listing.y, listing.labels)
    others = f"{listing.others:,} left out: no image suffix"
    return (
        found
        | ({"other files": others} if listing.others else {})
        | describe_files(listing.names, listing.parts, checked)
    )


def describe_files(names: Sequence[str], parts: Mapping[str, Tensor], checked: Checked) -> dict[str, Any]:
    """Sizes, duplicates, and leaks between parts."""
    found: dict[str, Any] = {"sizes": _sizes(checked)}
    part = np.full(len(names), "", dtype="U5")
    for name, rows in parts.items():
        part[rows.numpy()] = name
    exact = same_bytes(checked.digest)
    pairs = np.array([(g[0], other) for g in exact for other in g[1:]], np.int64).reshape(-1, 2)
    found["exact duplicates"] = _name_pairs(names, pairs, "=")
    alike = near(checked.hash, checked.thumb)
    if alike is None:
        found["near duplicates"] = "not counted: too many images look alike"
        alike = np.empty((0, 2), np.int64)
    else:
        bytes_differ = (checked.digest[alike[:, 0]] != checked.digest[alike[:, 1]]).any(1)
        alike = alike[bytes_differ]
        found["near duplicates"] = _name_pairs(names, alike, "≈")
    both = np.concatenate([_all_pairs(exact), alike])
    leaks = both[part[both[:, 0]] != part[both[:, 1]]]
    found["leaks between parts"] = _name_pairs(names, leaks, "≈", part)
    return found | describe_leaks([row.tobytes() for row in checked.digest], parts)


def digest_images(x: Tensor) -> list[bytes]:
    """A digest of each image's pixels (n, ..)."""
    return [xxhash.xxh3_128_digest(image) for image in x.contiguous().numpy()]


def describe_pixel_leaks(parts: Mapping[str, Any]) -> dict[str, str]:
    """What a run says of held-out images whose pixels are in training too; nothing of images that are not in memory."""
    pixels = {name: x.pixels if isinstance(x, Bytes) else x for name, x in parts.items()}
    if not all(isinstance(x, Tensor) for x in pixels.values()):
        return {}
    digests: list[bytes] = []
    rows = {}
    for name, x in pixels.items():
        rows[name] = torch.arange(len(digests), len(digests) + len(x))
        digests += digest_images(x)
    return describe_leaks(digests, rows)


def _all_pairs(groups: list[np.ndarray]) -> np.ndarray:
    """Every member of a group beside the next one in the list: enough to see whether a group reaches over parts."""
    pairs = [np.stack([group[:-1], group[1:]], 1) for group in groups]
    return np.concatenate([np.empty((0, 2), np.int64), *pairs])


def _sizes(checked: Checked) -> str:
    sizes = checked.sizes
    if len(sizes) == 1:
        [(height, width)] = sizes
        return f"all {height}×{width}"
    by_area = sorted(sizes, key=lambda size: (size[0] * size[1], size))
    small, large = ("×".join(map(str, by_area[i])) for i in (0, -1))
    return f"{len(sizes):,} different, from {small} to {large}"


def _name_pairs(listed: Sequence[str], pairs: np.ndarray, sign: str, part: np.ndarray | None = None) -> str | int:
    """How many pairs, and the first few by name."""
    if not len(pairs):
        return 0
    names = listed if part is None else [f"{n} ({p})" for n, p in zip(listed, part, strict=True)]
    shown = "; ".join(f"{names[a]} {sign} {names[b]}" for a, b in pairs[:SHOWN].tolist())
    return f"{len(pairs):,}: {shown}{' ..' if len(pairs) > SHOWN else ''}"
