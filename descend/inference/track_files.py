"""Tracks as a file, frame by frame: MOTChallenge's .txt or .jsonl. It has its name when the last frame is in it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from descend.data.video.mot_files import format_mot
from descend.errors import naming
from descend.files import sync
from descend.inference.tracker import TrackedObject, as_trajectories

KINDS = (".txt", ".jsonl")


def list_frame(frame: int, objects: Sequence[TrackedObject]) -> dict[str, Any]:
    """{"frame", "objects"} for JSON."""
    return {"frame": frame, "objects": [o._asdict() for o in objects]}


def format_frame(kind: str, objects: Sequence[TrackedObject]) -> str:
    """A line for each object."""
    if kind == ".jsonl":
        return "".join(json.dumps(o._asdict(), ensure_ascii=False) + "\n" for o in objects)
    return format_mot(as_trajectories(objects), torch.tensor([o.score for o in objects]))


@contextmanager
def write_tracks(path: Path) -> Iterator[Callable[[Sequence[TrackedObject]], None]]:
    """What writes the objects of a frame; nothing of the video is kept."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with naming(path), aside.open("w", encoding="utf-8") as file:
            yield lambda objects: (file.write(format_frame(path.suffix, objects)), None)[1]
        sync(aside)
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)
