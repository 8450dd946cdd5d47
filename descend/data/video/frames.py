"""Frames of a video, one at a time: from a file (PyAV, the extra `video`) or from a folder of images in their order.

    for pixels in open_video("street.mp4"):       (h, w, 3), 0..255

Only one frame is held. A file that is no video, has no frames, or ends before its last one is a mistake that names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from descend.data.images.files import decode, list_image_files
from descend.data.reading import check_file, show
from descend.errors import Mistake

RATE = 25.0  # frames a second, where nothing tells
SUFFIXES = (".mp4", ".mov", ".mkv", ".webm", ".avi", ".m4v", ".mpg", ".mpeg", ".ogv")
MISSING = "videos need PyAV: pip install 'descend[video]'; a folder of frames needs nothing"


class Video(Protocol):
    """Frames in order, and how many of them are shown in a second."""

    @property
    def rate(self) -> float: ...

    def __iter__(self) -> Iterator[np.ndarray]: ...


@dataclass(frozen=True)
class VideoFile:
    """A file that FFmpeg can decode."""

    path: Path
    rate: float
    told: int
    """How many frames the file says it has; 0: it does not say."""

    def __iter__(self) -> Iterator[np.ndarray]:
        count = 0
        with opened(self.path) as container:
            for frame in decode_frames(container, self.path):
                count += 1
                yield frame
        if count == 0:
            raise Mistake(f"{show(self.path)} has no frames; replace it")
        if count < self.told:
            raise Mistake(f"{show(self.path)} is truncated after {count:,} of {self.told:,} frames; copy it anew")


@dataclass(frozen=True)
class FrameFolder:
    """Image files, a frame each."""

    files: tuple[Path, ...]
    rate: float = RATE

    def __iter__(self) -> Iterator[np.ndarray]:
        return (decode(path, 3) for path in self.files)


def open_video(path: str | Path) -> Video:
    """A video file, or a folder whose images are the frames, by the numbers in their names."""
    path = Path(path)
    if path.is_dir():
        images, _ = list_image_files(path)
        if not images:
            raise Mistake(f"{show(path)} has no images; name a video, or a folder whose images are its frames")
        return FrameFolder(tuple(sorted(images, key=by_number)))
    check_file(path)
    with opened(path) as container:
        stream = next(iter(container.streams.video), None)
        if stream is None:
            raise Mistake(f"{show(path)} has no video, only {list_kinds(container)}; name another file")
        rate = float(stream.average_rate or stream.guessed_rate or 0)
        return VideoFile(path, rate if 0 < rate <= 1000 else RATE, stream.frames)


def by_number(path: Path) -> list[tuple[int, str]]:
    """frame-2 comes before frame-10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", str(path))]


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """FFmpeg's container of a file; what goes wrong in it is a mistake that names the file."""
    av = load_av()
    try:
        with av.open(str(path)) as container:
            yield container
    except (av.error.FFmpegError, ValueError) as error:
        said = (getattr(error, "strerror", "") or str(error)).lower()
        raise Mistake(f"{show(path)} cannot be read as a video ({said}); it may be truncated: copy it anew") from None


def decode_frames(container: Any, path: Path) -> Iterator[np.ndarray]:
    """Red, green and blue of each frame, upright as the file says."""
    for frame in container.decode(video=0):
        if frame.is_corrupt:
            raise Mistake(f"{show(path)} is damaged or truncated at frame {frame.pts}; copy it anew")
        pixels = frame.to_ndarray(format="rgb24")
        turns = round(frame.rotation / 90) % 4  # counter-clockwise, as FFmpeg tells it
        yield np.rot90(pixels, turns) if turns else pixels


def list_kinds(container: Any) -> str:
    return ", ".join(sorted({stream.type for stream in container.streams})) or "an empty container"


def load_av() -> Any:
    """PyAV, when a video is first opened; its log on the terminal is off, errors are told once, as mistakes."""
    try:
        import av
        import av.logging
    except ImportError:
        raise Mistake(MISSING) from None
    av.logging.set_level(av.logging.PANIC)
    return av


def is_video(path: str | Path) -> bool:
    """Whether a name is that of a video file."""
    return Path(path).suffix.lower() in SUFFIXES
