"""Darknet's two files: a network as text (.cfg) and its numbers (.weights), both ways.

    .cfg       sections [kind] of lines "name=value"; # and ; begin a comment; the first section is [net]
    .weights   int32 major, minor, revision; how many images were seen (int64 from version 0.2 on, else int32); then
               float32 of every convolution in the order of the sections: β, and with batch norm γ, μ, σ²; then W

`read_arrays` cuts the file by the shapes that a network asks for; a file that is too short or too long is not its.

Systems: yolo-v3, yolo-v4-v5
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from descend.errors import Mistake

Options = dict[str, str]


@dataclass(frozen=True)
class Section:
    """One layer of a network, as the file has it."""

    kind: str
    options: Options = field(default_factory=dict)

    def number(self, name: str, default: int = 0) -> int:
        """A whole number."""
        return int(float(self.options.get(name, default)))

    def real(self, name: str, default: float = 0.0) -> float:
        return float(self.options.get(name, default))

    def numbers(self, name: str) -> list[int]:
        """Whole numbers between commas; none where the line is missing."""
        return [int(word) for word in self.options.get(name, "").split(",") if word.strip()]

    def reals(self, name: str) -> list[float]:
        return [float(word) for word in self.options.get(name, "").split(",") if word.strip()]


def parse_cfg(text: str, source: str = "the cfg") -> list[Section]:
    """The sections of a .cfg file."""
    sections: list[Section] = []
    for place, raw in enumerate(text.splitlines(), 1):
        line = raw.partition("#")[0].partition(";")[0].strip()
        if line.startswith("["):
            if not line.endswith("]"):
                raise Mistake(f"{source}, line {place}: {line!r} is no [section]")
            sections.append(Section(line[1:-1].strip().lower(), {}))
        elif line:
            name, equals, value = (part.strip() for part in line.partition("="))
            if not equals or not sections:
                raise Mistake(f"{source}, line {place}: {line!r} is no name=value of a section")
            sections[-1].options[name] = value
    if not sections or sections[0].kind not in ("net", "network"):
        raise Mistake(f"{source}: a Darknet network begins with [net]")
    return sections


def format_cfg(sections: Iterable[Section]) -> str:
    """Sections as text."""
    blocks = ("\n".join([f"[{s.kind}]", *(f"{k}={v}" for k, v in s.options.items())]) for s in sections)
    return "\n\n".join(blocks) + "\n"


def read_arrays(path: Path, shapes: Sequence[tuple[int, ...]]) -> tuple[list[Tensor], int]:
    """Tensors of these shapes, one after the other, and how many images the network had seen."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Mistake(f"{path}: {error.strerror or error}") from None
    if len(data) < 16:
        raise Mistake(f"{path}: {len(data)} bytes are no Darknet weights")
    major, minor, _ = np.frombuffer(data, "<i4", 3)
    wide = 0 <= major < 1000 and 0 <= minor < 1000 and major * 10 + minor >= 2
    seen, start = int(np.frombuffer(data, "<i8" if wide else "<i4", 1, 12)[0]), 20 if wide else 16
    wanted = sum(int(np.prod(shape)) for shape in shapes)
    if len(data) - start != 4 * wanted:
        held = (len(data) - start) / 4
        raise Mistake(
            f"{path}: it has {held:,.10g} numbers, the network of the .cfg needs {wanted:,}; give its own .cfg"
        )
    values, arrays, at = np.frombuffer(data, "<f4", wanted, start), [], 0
    for shape in shapes:
        size = int(np.prod(shape))
        arrays.append(torch.from_numpy(values[at : at + size].reshape(shape).astype(np.float32)))
        at += size
    return arrays, seen


def write_arrays(path: Path, arrays: Iterable[Tensor], seen: int = 0) -> None:
    """The file of these tensors, in version 0.2."""
    with path.open("wb") as file:
        file.write(np.array([0, 2, 5], "<i4").tobytes() + np.array([seen], "<i8").tobytes())
        for array in arrays:
            file.write(array.detach().cpu().float().contiguous().numpy().astype("<f4").tobytes())
