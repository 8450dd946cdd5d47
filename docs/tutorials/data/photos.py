"""Photographs that nobody took: `python photos.py FOLDER --count 200 --side 32` writes FOLDER/CLASS/0001.jpg, ...

Ten things, drawn as silhouettes that are turned, mirrored, bent and resized, in any colour, before clutter, under
uneven light, often half hidden, blurred and noisy. Most are easy for a person; at 32 pixels some are not.

    --kind classes    FOLDER/CLASS/*.jpg
    --kind captions   FOLDER/captions.csv with image and caption: three captions for each image, in different words
    --kind masks      FOLDER/images/*.png and FOLDER/masks/*.png: cells under a microscope and their membranes
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

Random = np.random.Generator
Points = list[tuple[float, float]]
COLOURS = {
    "red": (205, 50, 45),
    "orange": (230, 130, 40),
    "yellow": (225, 205, 60),
    "green": (60, 150, 70),
    "blue": (55, 95, 190),
    "purple": (130, 70, 160),
    "white": (230, 230, 225),
    "black": (40, 40, 45),
}
FORMS = ("{thing}", "a photo of {thing}", "{thing} {where}", "there is {thing} {where}", "a picture with {thing}")
FINE = 4  # drawn this much larger than it is saved


def circle(x: float, y: float, rx: float, ry: float | None = None, parts: int = 14) -> Points:
    angles = np.linspace(0, 2 * np.pi, parts, endpoint=False)
    return [(x + rx * np.cos(a), y + (ry or rx) * np.sin(a)) for a in angles]


def box(x0: float, y0: float, x1: float, y1: float) -> Points:
    return [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]


THINGS: dict[str, list[Points]] = {
    "bird": [circle(0, 0.1, 0.6, 0.35), circle(0.55, -0.3, 0.25), [(0.75, -0.35), (1.0, -0.25), (0.75, -0.2)],
             [(-0.5, 0.1), (-1.0, 0.35), (-0.55, 0.3)], [(-0.2, -0.1), (-0.6, -0.75), (0.25, -0.1)]],
    "bottle": [box(-0.35, -0.2, 0.35, 1.0), [(-0.35, -0.2), (-0.13, -0.55), (0.13, -0.55), (0.35, -0.2)],
               box(-0.13, -1.0, 0.13, -0.5)],
    "car": [box(-1.0, 0.0, 1.0, 0.45), [(-0.65, 0.0), (-0.4, -0.45), (0.35, -0.45), (0.65, 0.0)],
            circle(-0.55, 0.45, 0.24), circle(0.55, 0.45, 0.24)],
    "chair": [box(-0.5, -1.0, -0.35, 1.0), box(-0.5, -0.05, 0.55, 0.12), box(0.4, 0.1, 0.55, 1.0),
              box(-0.5, -0.9, -0.3, -0.1)],
    "cup": [[(-0.6, -0.6), (0.45, -0.6), (0.35, 0.75), (-0.5, 0.75)], [*circle(0.6, 0.0, 0.38, 0.42)],
            box(-0.65, -0.68, 0.5, -0.55)],
    "fish": [circle(0.15, 0, 0.7, 0.4), [(-0.45, 0), (-1.0, -0.45), (-0.85, 0), (-1.0, 0.45)],
             [(0.1, -0.35), (0.35, -0.7), (0.5, -0.25)]],
    "flower": [*[circle(0.42 * np.cos(a), -0.35 + 0.42 * np.sin(a), 0.27) for a in np.arange(5) * 1.2566],
               box(-0.06, 0.0, 0.06, 1.0), [(0.0, 0.7), (0.5, 0.35), (0.3, 0.75)]],
    "house": [box(-0.7, -0.1, 0.7, 0.9), [(-0.9, -0.1), (0.0, -0.95), (0.9, -0.1)], box(0.35, -0.8, 0.55, -0.3)],
    "key": [circle(-0.6, 0, 0.38), box(-0.3, -0.1, 1.0, 0.1), box(0.6, 0.05, 0.74, 0.42), box(0.84, 0.05, 0.98, 0.36)],
    "tree": [box(-0.13, 0.2, 0.13, 1.0), circle(0, -0.35, 0.55), circle(-0.35, -0.05, 0.38), circle(0.38, -0.08, 0.4)],
}  # fmt: skip
HOLES = {"cup": [circle(0.58, 0.0, 0.2, 0.24)], "key": [circle(-0.65, 0, 0.17)], "house": [box(-0.2, 0.4, 0.15, 0.9)]}


def smooth_noise(random: Random, side: int, cells: int) -> NDArray[np.float64]:
    """A random surface in 0..1 with hills of side / cells."""
    small = Image.fromarray(random.integers(0, 256, (cells, cells), dtype=np.uint8))
    return np.asarray(small.resize((side, side), Image.Resampling.BICUBIC), dtype=np.float64) / 255


def draw_background(random: Random, side: int) -> Image.Image:
    """Two colours that run into each other, texture, and things that are nothing in particular."""
    mix = sum(smooth_noise(random, side, cells) * weight for cells, weight in ((2, 0.5), (6, 0.3), (24, 0.2)))
    low, high = random.integers(20, 236, (2, 3))
    image = Image.fromarray((low + np.asarray(mix)[..., None] * (high - low)).clip(0, 255).astype(np.uint8))
    draw = ImageDraw.Draw(image)
    for _ in range(random.integers(1, 6)):
        x, y = random.uniform(0, side, 2)
        w, h = random.uniform(0.05, 0.5, 2) * side
        colour = tuple(int(v) for v in random.integers(10, 246, 3))
        which = random.integers(3)
        if which == 0:
            draw.line([x, y, x + w, y + h * random.choice([-1, 1])], colour, int(random.integers(1, 5)))
        elif which == 1:
            draw.ellipse([x, y, x + w / 2, y + h / 2], colour)
        else:
            draw.polygon([x, y, x + w / 2, y + h / 3, x + w / 5, y + h / 2], colour)
    return image


def place(parts: list[Points], random: Random, side: int, size: float, at: tuple[float, float]) -> list[Points]:
    """Turned, mirrored, stretched and bent, in pixels."""
    turn, mirror = random.normal(0, 0.2), random.choice([-1, 1])
    stretch, slant = random.uniform(0.75, 1.3), random.normal(0, 0.15)
    c, s = np.cos(turn), np.sin(turn)
    moved = []
    for points in parts:
        xy = np.array(points) * (mirror * stretch, 1) + random.normal(0, 0.035, (len(points), 2))
        xy[:, 0] += slant * xy[:, 1]
        turned = xy @ np.array([[c, s], [-s, c]])
        moved.append([(at[0] + size * x, at[1] + size * y) for x, y in turned])
    return [[(float(x), float(y)) for x, y in points] for points in moved]


def draw_photo(
    thing: str, random: Random, side: int = 32, colour: tuple[int, int, int] | None = None
) -> tuple[Image.Image, tuple[float, float], float]:
    """The image, where its thing is (as shares of the side), and how large."""
    large = side * FINE
    image = draw_background(random, large)
    size = random.uniform(0.28, 0.46)
    at = (random.uniform(0.38, 0.62), random.uniform(0.38, 0.62))
    state = random.bit_generator.state
    mask = Image.new("L", (large, large), 0)
    pen, centre = ImageDraw.Draw(mask), (at[0] * large, at[1] * large)
    for points in place(THINGS[thing], random, large, size * large, centre):
        pen.polygon(points, 255)
    random.bit_generator.state = state  # the holes move with the thing
    for points in place(HOLES.get(thing, []), random, large, size * large, centre):
        pen.polygon(points, 0)
    base = np.array(colour or random.integers(15, 241, 3), dtype=np.float64)
    shade = 0.65 + 0.6 * smooth_noise(random, large, 3) + 0.25 * (smooth_noise(random, large, 20) - 0.5)
    body = Image.fromarray((base * shade[..., None]).clip(0, 255).astype(np.uint8))
    image.paste(body, (0, 0), mask)
    if random.random() < 0.25:  # something stands before it
        x, y = (float(v) * large for v in random.uniform(0.1, 0.8, 2))
        ImageDraw.Draw(image).rectangle(
            [x, y, x + large * float(random.uniform(0.08, 0.3)), y + large * float(random.uniform(0.08, 0.4))],
            tuple(int(v) for v in random.integers(10, 246, 3)),
        )
    image = image.filter(ImageFilter.GaussianBlur(float(random.uniform(0.3, 0.9)) * FINE / 2))
    pixels = np.asarray(image.resize((side, side), Image.Resampling.BOX), dtype=np.float64)
    light = random.uniform(0.6, 1.25) * (0.8 + 0.4 * smooth_noise(random, side, 2))[..., None]
    pixels = pixels * light + random.normal(0, random.uniform(2, 9), pixels.shape)
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8)), at, size


def write_classes(folder: Path, count: int, side: int, random: Random, things: Sequence[str]) -> None:
    for thing in things:
        (folder / thing).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            draw_photo(thing, random, side)[0].save(folder / thing / f"{number:04}.jpg", quality=85)


def write_captions(folder: Path, count: int, side: int, random: Random, things: Sequence[str]) -> None:
    """Three captions for each image: what a person would say, with or without colour, size and place."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    rows = []
    for number in range(count):
        thing, colour = str(random.choice(list(things))), str(random.choice(list(COLOURS)))
        image, (_, y), size = draw_photo(thing, random, side, COLOURS[colour])
        name = f"images/{number:05}.jpg"
        image.save(folder / name, quality=90)
        where = f"{'at the top' if y < 0.45 else 'at the bottom' if y > 0.55 else 'in the middle'}"
        for form in random.choice(FORMS, 3, replace=False):
            words = [
                "large" if size > 0.4 else "small" if size < 0.34 else "",
                colour if random.random() < 0.85 else "",
                thing,
            ]
            said = " ".join(word for word in words if word)
            article = "an" if said[0] in "aeiou" else "a"
            rows.append([name, form.format(thing=f"{article} {said}", where=where)])
    with (folder / "captions.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["image", "caption"], *rows])


def write_masks(folder: Path, count: int, side: int, random: Random, things: Sequence[str]) -> None:
    """Cells as a microscope shows them: grey, grainy, unevenly lit; the mask is 1 where there is membrane."""
    for part in ("images", "masks"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    (folder / "classes.txt").write_text("cell\nmembrane\n", encoding="utf-8")
    y, x = np.mgrid[0:side, 0:side] / side
    for number in range(count):
        centres = random.uniform(-0.1, 1.1, (int(random.integers(14, 26)), 2))
        bent = 0.06 * (np.stack([smooth_noise(random, side, 5), smooth_noise(random, side, 5)]) - 0.5)
        far = np.hypot((y + bent[0])[..., None] - centres[:, 0], (x + bent[1])[..., None] - centres[:, 1])
        near = np.sort(far, axis=-1)
        wall = (near[..., 1] - near[..., 0]) < random.uniform(0.025, 0.04)
        grey = np.where(wall, 70.0, 165.0) + 50 * (smooth_noise(random, side, 12) - 0.5)
        for _ in range(int(random.integers(4, 12))):  # what is in a cell, as dark as its membrane
            cy, cx = random.uniform(0, 1, 2)
            grey[np.hypot(y - cy, x - cx) < random.uniform(0.01, 0.03)] = 80
        grey = grey * (0.75 + 0.5 * smooth_noise(random, side, 2)) + random.normal(0, 18, grey.shape)
        Image.fromarray(grey.clip(0, 255).astype(np.uint8)).save(folder / "images" / f"{number:03}.png")
        Image.fromarray(wall.astype(np.uint8)).save(folder / "masks" / f"{number:03}.png")


WRITERS = {"classes": write_classes, "captions": write_captions, "masks": write_masks}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kind", choices=list(WRITERS), default="classes")
    parser.add_argument("--count", type=int, default=200, help="images of each class, or in all")
    parser.add_argument("--side", type=int, default=32, help="pixels")
    parser.add_argument("--only", nargs="*", choices=list(THINGS), default=list(THINGS), help="these things")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    WRITERS[given.kind](given.folder, given.count, given.side, np.random.default_rng(given.seed), given.only)


if __name__ == "__main__":
    main()
