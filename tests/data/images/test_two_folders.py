"""Images of two domains in two folders: pairs by name, any sizes, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from descend.data.images.two_folders import read_pairs, read_two_folders
from descend.errors import Mistake


def write(folder: Path, names: list[str], value: int, size: tuple[int, int] = (10, 8)) -> None:
    folder.mkdir(parents=True)
    for i, name in enumerate(names):
        Image.fromarray(np.full((*size, 3), value + i, np.uint8)).save(folder / name)


def test_pairs_are_found_by_name(tmp_path: Path) -> None:
    write(tmp_path / "source", ["b.png", "a.png", "d.png", "c.png"], 100)
    write(tmp_path / "target", ["a.jpg", "b.jpg", "c.jpg", "d.jpg"], 200, (6, 6))
    found = read_pairs(str(tmp_path))
    assert [file.name for file in found.source] == ["a.png", "b.png", "c.png", "d.png"]
    assert [file.name for file in found.target] == ["a.jpg", "b.jpg", "c.jpg", "d.jpg"]
    x, y = found.pixels(8, 0, 2)
    assert x.shape == y.shape == (2, 3, 8, 8)
    assert float(x[0, 0, 0, 0]) == pytest.approx(101 / 127.5 - 1)


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="there is no folder 'source'"):
        read_two_folders(str(tmp_path))
    write(tmp_path / "source", ["a.png", "b.png", "c.png", "e.png"], 0)
    write(tmp_path / "target", ["a.png"], 0)
    with pytest.raises(Mistake, match="1 images are too few"):
        read_two_folders(str(tmp_path))
    for name in ("b.png", "c.png", "d.png"):
        (tmp_path / "target" / name).write_bytes((tmp_path / "target" / "a.png").read_bytes())
    read_two_folders(str(tmp_path))
    with pytest.raises(Mistake, match=r"e\.png has no image of that name in target/ \(1 of 4 have none\)"):
        read_pairs(str(tmp_path))
