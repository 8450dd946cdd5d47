"""Facts about images with objects before training: classes, sizes, small objects, imbalance, leaks, and what is odd."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from descend.data.detection.annotated import AnnotatedSet, shorten_list
from descend.data.detection.clean import SMALL, find_small
from descend.data.detection.framing import Framing
from descend.data.detection.objects import Objects
from descend.data.images.facts import CLASSES, describe_files


def describe_objects(objects: Objects, labels: tuple[str, ...], framing: Framing) -> dict[str, Any]:
    """How many of each class, imbalance, images without objects, and small ones."""
    counts = torch.bincount(objects.classes, minlength=len(labels)).tolist()
    order = sorted(range(len(labels)), key=lambda k: counts[k])
    told = ", ".join(f"{name} {count:,}" for name, count in zip(labels, counts, strict=True))
    if len(labels) > CLASSES:
        told = f"from {counts[order[0]]:,} ({labels[order[0]]}) to {counts[order[-1]]:,} ({labels[order[-1]]})"
    ratio = counts[order[-1]] / counts[order[0]] if counts[order[0]] else float("inf")
    each = objects.counts
    empty, small = int((each == 0).sum()), int(find_small(objects, framing).sum())
    found: dict[str, Any] = {
        "objects": f"{len(objects.classes):,} in {len(objects):,} images, {int(each.max())} at most",
        "objects per class": told,
        "imbalance": f"{ratio:.3g} : 1",
    }
    if empty:
        found["images without objects"] = empty
    if small:
        share = small / max(1, len(objects.classes))
        found["small objects"] = f"{small:,} ({share:.0%}) have a side below {SMALL} pixels at this --data.size"
    if crowds := int(objects.crowd.sum()):
        found["crowds or difficult"] = crowds
    return found


def describe_folder(
    found: AnnotatedSet, objects: Objects, parts: dict[str, Tensor], framing: Framing
) -> dict[str, Any]:
    """All of it for a folder."""
    listed, facts = found.listed, {"format": found.form}
    facts |= describe_objects(objects, found.labels, framing)
    if found.numbers != tuple(range(len(found.labels))):
        gaps = " with gaps" if found.numbers[-1] - found.numbers[0] >= len(found.numbers) else ""
        facts["class numbers"] = (
            f"{found.numbers[0]} to {found.numbers[-1]}{gaps} in the files, 0 to {len(found.labels) - 1} here"
        )
    facts |= describe_files(listed.names, parts, listed.checked)
    if listed.turned:
        names = [listed.names[i] for i in listed.turned]
        facts["turned by their EXIF note"] = f"{shorten_list(names)}; boxes are taken to mean the turned image"
    taught = set(objects.classes[torch.isin(objects.owner, parts["train"])].tolist())
    if never := [name for k, name in enumerate(found.labels) if k not in taught]:
        facts["classes without a training object"] = shorten_list(never)
    return facts | found.notes.facts()
