"""Images of two domains as users have them: a folder with `source` and `target`, each full of images.

For pairs, an image and its translation have the same name (a.png and a.jpg belong together). Without pairs, names and
numbers may differ. Images are stretched to one square side, in colour; the last ones, by name, are held out.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from descend.data.images.files import cores, decode_all, list_image_files
from descend.data.images.frame import Frame
from descend.errors import Mistake

NAMES = ("source", "target")
LEAST = 4  # images of each domain


@dataclass(frozen=True)
class TwoFolders:
    """Files of both domains, in the order of their names."""

    source: tuple[Path, ...]
    target: tuple[Path, ...]

    def pixels(self, side: int, first: int, last: int | None) -> tuple[Tensor, Tensor]:
        """Some images of each domain, in −1..1: (n, 3, side, side)."""
        frame = Frame(side, side)
        x, y = (decode_all(files[first:last], 3, frame, cores()) for files in (self.source, self.target))
        return x.float() / 127.5 - 1, y.float() / 127.5 - 1


def read_two_folders(path: str) -> TwoFolders:
    """Any images of the two domains."""
    root = Path(path)
    found = []
    for name in NAMES:
        folder = root / name
        if not folder.is_dir():
            raise Mistake(
                f"--data.path {path}: there is no folder {name!r} in it; put the images in source/ and target/"
            )
        files = sorted(list_image_files(folder)[0], key=lambda file: file.name)
        if len(files) < LEAST:
            raise Mistake(f"{folder}: {len(files)} images are too few; at least {LEAST} are needed")
        found.append(tuple(files))
    return TwoFolders(*found)


def read_pairs(path: str) -> TwoFolders:
    """Images with their translations: the same names, whatever they end with."""
    found = read_two_folders(path)
    names = [{file.stem: file for file in files} for files in (found.source, found.target)]
    for here, there, where in ((names[0], names[1], "target"), (names[1], names[0], "source")):
        missing = sorted(here.keys() - there.keys())
        if missing:
            raise Mistake(
                f"--data.path {path}: {here[missing[0]].name} has no image of that name in {where}/ "
                f"({len(missing)} of {len(here)} have none); pairs have the same name, or train cyclegan-scenes"
            )
    order = sorted(names[0])
    return TwoFolders(*(tuple(side[stem] for stem in order) for side in names))
