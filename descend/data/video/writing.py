"""Frames into a video file or a folder, one at a time. The file appears under its name when the last frame is in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from descend.data.video.frames import load_av
from descend.errors import Mistake
from descend.files import sync

KINDS = (".mp4", ".mkv", ".mov", ".avi")
CODECS = ("libx264", "mpeg4")
DIGITS = 6  # of a frame's number


class Sink(Protocol):
    """Where frames go."""

    def write(self, pixels: np.ndarray) -> None: ...


class FolderSink:
    """frame-000001.png, frame-000002.png, .."""

    def __init__(self, folder: Path):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.count = folder, 0

    def write(self, pixels: np.ndarray) -> None:
        from PIL import Image

        self.count += 1
        Image.fromarray(np.ascontiguousarray(pixels)).save(self.folder / f"frame-{self.count:0{DIGITS}}.png")


class VideoSink:
    """Frames of one size, (h, w, 3) of 0..255; an odd side gets a row or column more, which the codec needs."""

    def __init__(self, container: Any, rate: float):
        self.container, self.rate = container, Fraction(rate).limit_denominator(1001)
        self.stream: Any = None
        self.size: tuple[int, ...] = ()

    def write(self, pixels: np.ndarray) -> None:
        import av

        if self.stream is None:
            self.start(*pixels.shape[:2])
        if pixels.shape[:2] != self.size:
            now, first = ("×".join(map(str, size)) for size in (pixels.shape[:2], self.size))
            raise Mistake(f"a frame of {now} pixels after {first}: a video has one size; name a folder as --out")
        height, width = self.size
        padded = np.pad(pixels, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
        frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(padded), format="rgb24")
        self.container.mux(self.stream.encode(frame))

    def start(self, height: int, width: int) -> None:
        """By the first frame."""
        av = load_av()
        codec = next(name for name in CODECS if name in av.codecs_available)
        self.stream = self.container.add_stream(codec, rate=self.rate)
        self.stream.height, self.stream.width = height + height % 2, width + width % 2
        self.stream.pix_fmt = "yuv420p"
        self.size = (height, width)

    def finish(self) -> None:
        """What the codec still holds."""
        if self.stream is not None:
            self.container.mux(self.stream.encode())


@contextmanager
def write_video(path: Path, rate: float) -> Iterator[Sink]:
    """A file with the suffix of a video, or a folder. A file is renamed into its place at the end."""
    if not path.suffix:
        yield FolderSink(path)
        return
    aside = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        with load_av().open(str(aside), "w") as container:
            sink = VideoSink(container, rate)
            yield sink
            sink.finish()
        if sink.stream is None:
            raise Mistake(f"--out {path}: there was no frame to write")
        sync(aside)
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)


def check_video_out(path: Path, replace: bool) -> None:
    """Refuse a place that cannot be written, before anything is computed."""
    if path.suffix and path.suffix.lower() not in KINDS:
        raise Mistake(f"--out {path}: a name that ends in {', '.join(KINDS)}, or a folder for frames")
    if path.suffix:
        load_av()
        if not path.parent.is_dir():
            raise Mistake(f"--out {path}: the folder {path.parent} does not exist")
        if path.is_dir():
            raise Mistake(f"--out {path} is a folder; give the name of a file")
        if path.exists() and not replace:
            raise Mistake(f"--out {path} exists; give --replace to write it anew, or another name")
    elif path.exists() and (not path.is_dir() or any(path.iterdir())) and not replace:
        raise Mistake(f"--out {path} exists and is not an empty folder; give --replace, or another name")
