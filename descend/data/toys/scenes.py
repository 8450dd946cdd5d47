"""Generated scenes with exact truth: coloured shapes on a shaded, textured ground, each in front of those before it.

    pixel of an object:  coverage a = clip(½ − d, 0, 1), d the signed distance of the pixel's centre from the outline
    image                x ← (1 − a) x + a · colour, object after object
    mask                 1 + shape of the last object with d < 0, else 0: the object that has the pixel's centre

Every scene is a function of the generator's state. Boxes hold what is visible: x0, y0 is the corner of the first pixel,
x1, y1 the far corner of the last, so a box of one pixel is 1 wide. An object that is wholly hidden is not present.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from descend.data.toys.outlines import OUTLINES, UPRIGHT
from descend.errors import Mistake

SHAPES = tuple(OUTLINES)
RGB = {
    "red": (0.90, 0.12, 0.12),
    "green": (0.10, 0.70, 0.20),
    "blue": (0.15, 0.25, 0.92),
    "yellow": (0.96, 0.88, 0.10),
    "purple": (0.62, 0.15, 0.78),
    "orange": (0.98, 0.52, 0.08),
    "cyan": (0.10, 0.82, 0.88),
    "white": (0.97, 0.97, 0.97),
}
COLOURS = tuple(RGB)
RADIUS = 0.14, 0.24  # least and greatest radius, as shares of the side
TILT = torch.pi  # the most that an object is turned from standing upright
PLACES = 3  # places tried for an object; the one that hides least is taken
AT_ONCE = 128  # scenes drawn together: bounds the memory


@dataclass(frozen=True)
class Scenes:
    """n scenes of side s with up to o objects; where `present` is False, shape and colour are −1 and the box is 0."""

    x: Tensor
    """Pixels (n, 3, s, s) in 0..1."""
    mask: Tensor
    """Classes (n, s, s): 0 the ground, 1 + number of the shape."""
    shape: Tensor
    """Number of each object's shape in SHAPES (n, o)."""
    colour: Tensor
    """Number of each object's colour in COLOURS (n, o)."""
    box: Tensor
    """x0, y0, x1, y1 of what is visible of each object, in pixels (n, o, 4)."""
    present: Tensor
    """Which objects there are (n, o)."""
    instance: Tensor
    """Whose pixel it is (n, s, s): 0 the ground, 1 + number of the object in 0..o−1."""

    def __len__(self) -> int:
        return len(self.x)


def scenes(
    n: int,
    side: int,
    random: torch.Generator,
    objects: tuple[int, int] = (1, 3),
    radius: tuple[float, float] = RADIUS,
) -> Scenes:
    """n scenes, each with least to most `objects` of any shape and colour; `radius` as shares of the side."""
    least, most = objects
    if not 0 <= least <= most or most < 1:
        raise Mistake(f"objects {least} to {most}: the minimum must be >= 0, the maximum >= 1 and >= the minimum")
    shape = torch.randint(len(SHAPES), (n, most), generator=random)
    colour = torch.randint(len(COLOURS), (n, most), generator=random)
    count = torch.randint(least, most + 1, (n, 1), generator=random)
    return draw_scenes(shape, colour, torch.arange(most) < count, side, random, radius)


def one_object(
    n: int,
    side: int,
    random: torch.Generator,
    pairs: Sequence[tuple[str, str]],
    radius: tuple[float, float] = RADIUS,
    tilt: float = TILT,
) -> Scenes:
    """n scenes of one object each, its (shape, colour) drawn from these pairs of names."""
    for shape, colour in pairs:
        if shape not in SHAPES or colour not in COLOURS:
            raise Mistake(f"({shape}, {colour}): the shapes are {', '.join(SHAPES)}; the colours {', '.join(COLOURS)}")
    table = torch.tensor([(SHAPES.index(shape), COLOURS.index(colour)) for shape, colour in pairs])
    chosen = table[torch.randint(len(pairs), (n,), generator=random)]
    return draw_scenes(chosen[:, :1], chosen[:, 1:], torch.ones(n, 1, dtype=torch.bool), side, random, radius, tilt)


def draw_scenes(
    shape: Tensor,
    colour: Tensor,
    present: Tensor,
    side: int,
    random: torch.Generator,
    radius: tuple[float, float] = RADIUS,
    tilt: float = TILT,
) -> Scenes:
    """The scenes of these objects, at random places, sizes and angles."""
    if side < 8:
        raise Mistake(f"side {side}: a scene needs at least 8 pixels")
    if not len(shape):
        raise Mistake("0 scenes: ask for at least 1")
    place = places(present, side, random, radius)
    place[..., 3] = stand(shape) + tilt * place[..., 3]
    return paint_scenes(shape, colour, present, place, side, random)


def stand(shape: Tensor) -> Tensor:
    """How far each shape is turned to stand upright."""
    return torch.tensor([UPRIGHT.get(name, 0.0) for name in SHAPES])[shape]


def paint_scenes(
    shape: Tensor, colour: Tensor, present: Tensor, place: Tensor, side: int, random: torch.Generator
) -> Scenes:
    """The scenes of these objects at these places (n, o, 4): centre x, y, radius in pixels, angle."""
    tint = torch.tensor(list(RGB.values()))[colour] + 0.05 * torch.randn(*colour.shape, 3, generator=random)
    parts = []
    for now in torch.arange(len(shape)).split(AT_ONCE):
        there = present[now]
        d = distances(shape[now].masked_fill(~there, -1), place[now], side).masked_fill(
            ~there[..., None, None], torch.inf
        )
        x = paint_objects(ground(len(now), side, random), d, tint[now], random)
        parts.append((x, *truth(d, shape[now]), find_front(d)))
    x, mask, box, visible, front = (torch.cat(part) for part in zip(*parts, strict=True))
    absent = ~visible
    return Scenes(x, mask, shape.masked_fill(absent, -1), colour.masked_fill(absent, -1), box, visible, front)


def places(present: Tensor, side: int, random: torch.Generator, within: tuple[float, float] = RADIUS) -> Tensor:
    """Centre x, y, radius in pixels, and a turn in −1..1 of each object (n, o, 4); objects lie inside the image."""
    n, o = present.shape
    u = torch.rand(n, o, PLACES, 4, generator=random)
    radius = side * (within[0] + (within[1] - within[0]) * u[:, :, :1, 2:3])
    centre = radius + (side - 2 * radius) * u[..., :2]
    chosen = centre[:, :, 0].clone()
    rows = torch.arange(n)
    for i in range(1, o):
        apart = torch.cdist(centre[:, i], chosen[:, :i]) - radius[:, i] - radius[:, :i, 0].mT
        best = apart.masked_fill(~present[:, None, :i], torch.inf).amin(dim=2).argmax(dim=1)
        chosen[:, i] = centre[rows, i, best]
    return torch.cat([chosen, radius[:, :, 0], 2 * u[:, :, 0, 3:] - 1], dim=2)


def distances(shape: Tensor, place: Tensor, side: int) -> Tensor:
    """Signed distance of every pixel's centre from each outline, in pixels: (n, o, s, s)."""
    grid = torch.arange(side) + 0.5
    x0, y0, radius, angle = place[..., None, None].unbind(dim=2)
    x, y = (grid - x0) / radius, (grid[:, None] - y0) / radius
    x, y = x * angle.cos() + y * angle.sin(), y * angle.cos() - x * angle.sin()
    d = torch.empty_like(x)
    for number, outline in enumerate(OUTLINES.values()):
        of = shape == number
        d[of] = outline(x[of], y[of])
    return d * radius


def ground(n: int, side: int, random: torch.Generator) -> Tensor:
    """A muted colour, coarse texture and a light that falls off to one side: (n, 3, s, s)."""
    base = 0.25 + 0.35 * torch.rand(n, 1, 1, 1, generator=random) + 0.1 * torch.rand(n, 3, 1, 1, generator=random)
    coarse = F.interpolate(torch.randn(n, 1, 6, 6, generator=random), size=side, mode="bicubic")
    return base + 0.06 * coarse + 0.12 * slope(n, side, random)


def slope(n: int, side: int, random: torch.Generator) -> Tensor:
    """A plane through 0 in the middle, about ±1 at the edges, in any direction: (n, 1, s, s)."""
    angle = 2 * torch.pi * torch.rand(n, 1, 1, 1, generator=random)
    line = torch.linspace(-1, 1, side)
    return line * angle.cos() + line[:, None] * angle.sin()


def paint_objects(x: Tensor, d: Tensor, tint: Tensor, random: torch.Generator) -> Tensor:
    """The objects painted over the ground x, one after another, shaded, and noise over all of it."""
    light = 1 + 0.1 * slope(len(x), x.shape[-1], random)
    for i in range(d.shape[1]):
        a = (0.5 - d[:, i, None]).clamp(0, 1)
        x = torch.lerp(x, tint[:, i, :, None, None] * light, a)
    return (x + 0.02 * torch.randn(x.shape, generator=random)).clamp_(0, 1)


def find_front(d: Tensor) -> Tensor:
    """1 + the number of the last object that has the pixel's centre, else 0: of distances (n, o, s, s) -> (n, s, s)"""
    return torch.where(d < 0, torch.arange(1, d.shape[1] + 1)[:, None, None], 0).amax(dim=1)


def truth(d: Tensor, shape: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mask (n, s, s), boxes (n, o, 4) and which objects are visible (n, o)."""
    n, o, side, _ = d.shape
    front = find_front(d)
    classes = torch.cat([torch.zeros(n, 1, dtype=torch.long), shape + 1], dim=1)
    mask = classes.gather(1, front.flatten(1)).view_as(front)
    seen = front[:, None] == torch.arange(1, o + 1)[:, None, None]
    across, down = seen.any(dim=2), seen.any(dim=3)
    visible = across.any(dim=2)
    first = [line.int().argmax(dim=2) for line in (across, down)]
    last = [side - line.flip(2).int().argmax(dim=2) for line in (across, down)]
    box = torch.stack([*first, *last], dim=2) * visible[..., None]
    return mask, box.float(), visible
