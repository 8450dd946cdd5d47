"""Images that become tensors when they are asked for: kept as bytes in memory, or decoded from their files.

    x[rows]  ->  floats (b, c, h, w) in 0..1        rows: positions, or a slice

A tensor of floats is the third form; all three have `shape` and a length.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from descend.data.images.files import decode_all
from descend.data.images.frame import Frame

Rows = Tensor | slice


class Bytes:
    """8-bit images (n, c, h, w) in memory: a quarter of what floats take."""

    def __init__(self, pixels: Tensor):
        if pixels.dtype != torch.uint8 or pixels.dim() != 4:
            raise ValueError(f"8-bit images (n, c, h, w), not {pixels.dtype} of {tuple(pixels.shape)}")
        self.pixels = pixels

    @property
    def shape(self) -> torch.Size:
        return self.pixels.shape

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, rows: Rows) -> Tensor:
        return self.pixels[rows].float() / 255

    def select(self, rows: Tensor) -> Bytes:
        """These rows, still as bytes."""
        return Bytes(self.pixels[rows])


class Files:
    """Image files, decoded each time."""

    def __init__(self, paths: Sequence[str | Path], channels: int, frame: Frame):
        self.paths, self.channels, self.frame = [str(path) for path in paths], channels, frame

    @property
    def shape(self) -> torch.Size:
        return torch.Size((len(self.paths), self.channels, self.frame.height, self.frame.width))

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, rows: Rows) -> Tensor:
        return decode_all(self.names(rows), self.channels, self.frame).float() / 255

    def select(self, rows: Tensor) -> Files:
        """These rows, still as files."""
        return Files(self.names(rows), self.channels, self.frame)

    def names(self, rows: Rows) -> list[str]:
        """The files' paths."""
        return self.paths[rows] if isinstance(rows, slice) else [self.paths[i] for i in rows.tolist()]
