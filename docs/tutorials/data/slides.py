"""Blood under a microscope that nobody took: `python slides.py FOLDER --count 60 --side 320` writes a VOC folder.

    FOLDER/JPEGImages/0001.jpg      red and white cells and platelets, crowded, overlapping, cut off at the edges
    FOLDER/Annotations/0001.xml     their boxes
    FOLDER/ImageSets/Main           train.txt, val.txt, test.txt (not with --plain)

As in real sets, some annotations are wrong: a box without an area, and an image whose objects were forgotten.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

Random = np.random.Generator
Cell = tuple[str, float, float, float, float]
"""Name, centre x, y, and both radii."""
FINE = 3  # drawn this much larger than it is saved
GROUND, RED, WHITE, NUCLEUS, PLATELET = (
    (232, 215, 210), (214, 140, 135), (205, 180, 215), (110, 70, 160), (150, 95, 170),
)  # fmt: skip
SHARES = {"RBC": (8, 18, 0.055), "WBC": (1, 2, 0.1), "Platelets": (0, 3, 0.02)}
"""Least and most in an image of 320 pixels, and the radius as a share of the side."""


def place_cells(side: int, random: Random) -> list[Cell]:
    """Where the cells of an image lie."""
    found: list[Cell] = []
    for name, (least, most, radius) in SHARES.items():
        for _ in range(int(random.integers(least, most + 1))):
            r = side * radius * random.uniform(0.8, 1.2)
            x, y = random.uniform(0.3 * r, side - 0.3 * r, 2)
            found.append((name, x, y, r, r * random.uniform(0.85, 1.0)))
    return found


def draw_slide(cells: list[Cell], side: int, random: Random) -> Image.Image:
    """The cells before uneven light, blurred and noisy."""
    picture = Image.new("RGB", (FINE * side, FINE * side), GROUND)
    pen = ImageDraw.Draw(picture)
    for name, x, y, rx, ry in cells:
        x0, y0, x1, y1 = (FINE * v for v in (x - rx, y - ry, x + rx, y + ry))
        tint = tuple(int(v + random.integers(-12, 13)) for v in (RED if name == "RBC" else WHITE))
        if name == "Platelets":
            pen.ellipse((x0, y0, x1, y1), fill=PLATELET)
            continue
        pen.ellipse((x0, y0, x1, y1), fill=tint)
        if name == "RBC":
            middle = tuple(min(255, v + 28) for v in tint)
            pen.ellipse((x0 + (x1 - x0) / 3, y0 + (y1 - y0) / 3, x1 - (x1 - x0) / 3, y1 - (y1 - y0) / 3), fill=middle)
        else:
            for _ in range(3):
                dx, dy = random.uniform(-0.35, 0.35, 2) * (x1 - x0) / 2
                cx, cy, r = (x0 + x1) / 2 + dx, (y0 + y1) / 2 + dy, (x1 - x0) / 4
                pen.ellipse((cx - r, cy - r, cx + r, cy + r), fill=NUCLEUS)
    small = picture.resize((side, side), Image.Resampling.LANCZOS).filter(ImageFilter.GaussianBlur(0.7))
    pixels: NDArray[np.float64] = np.asarray(small, dtype=np.float64)
    line = np.linspace(-1, 1, side)
    light = 1 + random.uniform(-0.1, 0.1) * line[:, None] + random.uniform(-0.1, 0.1) * line
    pixels = pixels * light[..., None] + random.normal(0, 4, pixels.shape)
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def write_boxes(path: Path, cells: list[Cell], side: int, fault: str) -> None:
    """An annotation in the form of VOC."""
    lines = [f"<annotation><filename>{path.stem}.jpg</filename>"]
    lines.append(f"<size><width>{side}</width><height>{side}</height><depth>3</depth></size>")
    for name, x, y, rx, ry in [] if fault == "forgotten" else cells:
        x0, y0, x1, y1 = (round(float(np.clip(v, 0, side))) for v in (x - rx, y - ry, x + rx, y + ry))
        corners = f"<xmin>{x0}</xmin><ymin>{y0}</ymin><xmax>{x1}</xmax><ymax>{y1}</ymax>"
        lines.append(f"<object><name>{name}</name><difficult>0</difficult><bndbox>{corners}</bndbox></object>")
    if fault == "empty box":
        corners = "<xmin>5</xmin><ymin>5</ymin><xmax>5</xmax><ymax>9</ymax>"
        lines.append(f"<object><name>RBC</name><difficult>0</difficult><bndbox>{corners}</bndbox></object>")
    path.write_text("\n".join([*lines, "</annotation>"]) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--side", type=int, default=320)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plain", action="store_true", help="no faults, no parts")
    options = parser.parse_args()
    random = np.random.default_rng(options.seed)
    for part in ("JPEGImages", "Annotations", *(() if options.plain else ("ImageSets/Main",))):
        (options.folder / part).mkdir(parents=True, exist_ok=True)
    names = [f"{i + 1:04}" for i in range(options.count)]
    faults = {} if options.plain else {names[2]: "empty box", names[5]: "forgotten"}
    for name in names:
        cells = place_cells(options.side, random)
        draw_slide(cells, options.side, random).save(options.folder / "JPEGImages" / f"{name}.jpg", quality=92)
        write_boxes(options.folder / "Annotations" / f"{name}.xml", cells, options.side, faults.get(name, ""))
    if not options.plain:
        cuts = {"train": (0, 0.7), "val": (0.7, 0.85), "test": (0.85, 1)}
        for part, (start, stop) in cuts.items():
            chosen = names[round(start * len(names)) : round(stop * len(names))]
            (options.folder / "ImageSets" / "Main" / f"{part}.txt").write_text("\n".join(chosen) + "\n")


if __name__ == "__main__":
    main()
