"""Augmentation of images with objects: the pixels, the boxes and the instance masks move together.

    geometry    q = a (p − p₀) + q₀ per axis, mirrored or not       p in the image, or in the plane of a mosaic
                a = e^s · S'/S, s uniform in ±scale; S' the side of this step's inputs; q₀ shifted by up to ±shift · S'
    colour      x' = b (g + t R(θ)) x, the grey part kept, saturation times t, hue turned by θ, brightness times b:
                one 3 × 3 matrix for each image

Everything is a function of the image and of its own numbers u, which belong to seed, epoch and image, and of the place
of the example in the run (when the mosaic ends, how large a step's inputs are): see `stream.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

from descend.data.detection.canvases import FramedObjects
from descend.data.detection.framing import Placed, to_input
from descend.data.detection.mosaic import NEAR, find_visible, join_four, move_to_plane
from descend.data.streams.batches import find_items
from descend.ops.boxes import clip_boxes
from descend.ranges import Fraction, Range, Share
from descend.seeds import generator

STRIDE = 32  # multi-scale inputs have sides that are multiples of it
VISIBLE, SMALLEST = 0.2, 2.0  # an object of which less is seen (share; pixels) is not learned
APART = 2**33  # keeps the seeds of sizes apart from others
CHANCE = 14
"""Random numbers of an example: mosaic or not, three partners, centre (2), scale, shift (2), mirror, colour (4)."""


@dataclass(frozen=True)
class ObjectAugment:
    """How much training images are changed; all 0: not at all."""

    mosaic: Share = 0.0
    """Share of the examples that are a mosaic of four images."""
    close: Share = 0.15
    """Share of the run, at its end, without mosaics."""
    flip: Share = 0.0
    """Probability of a horizontal flip."""
    scale: Annotated[float, Range(float, least=0, most=2)] = 0.0
    """Largest change of the logarithm of the size; 0.5 is from 0.61 to 1.65 times."""
    shift: Share = 0.0
    """Largest shift, as a share of the side."""
    hue: Share = 0.0
    """Largest turn of the hue, as a share of a half turn."""
    saturation: Fraction = 0.0
    """Largest change of the saturation, as a share."""
    brightness: Fraction = 0.0
    """Largest change of the brightness, as a share."""
    multi_scale: Fraction = 0.0
    """Largest change of the input's side from step to step, as a share; sides are multiples of 32."""

    @property
    def idle(self) -> bool:
        return not (self.moves or self.colours)

    @property
    def moves(self) -> bool:
        return bool(self.mosaic or self.flip or self.scale or self.shift or self.multi_scale)

    @property
    def colours(self) -> bool:
        return bool(self.hue or self.saturation or self.brightness)

    def choose_side(self, side: int, seed: int, step: int) -> int:
        """The side of the inputs of a step."""
        if not self.multi_scale:
            return side
        low, high = (round(side * (1 + s * self.multi_scale) / STRIDE) for s in (-1, 1))
        low = max(1, low)
        return STRIDE * int(torch.randint(low, max(low, high) + 1, (), generator=generator(seed + APART, step)))


class Sampled(NamedTuple):
    """b images with objects laid end to end."""

    x: Tensor
    """(b, 3, S', S') in 0..1"""
    boxes: Tensor
    owner: Tensor
    items: Tensor
    """Which of the set's objects each one is (k)."""
    masks: Tensor | None
    """1 + the number of the object within its image, 0 the ground (b, S', S')."""


class Chosen(NamedTuple):
    """Which images of a set make which of b examples."""

    rows: Tensor
    """One image for an example, or four (r)."""
    owner: Tensor
    """Their example (r)."""
    four: Tensor
    """Which examples are mosaics (b)."""

    @property
    def quadrant(self) -> Tensor:
        """Where each image lies in its mosaic (r)."""
        counts = torch.where(self.four, 4, 1)
        return torch.arange(len(self.rows)) - (counts.cumsum(0) - counts)[self.owner]


class Geometry(NamedTuple):
    """q = gain · p + offset per axis, x then y (b, 2); a mirrored one has a negative gain in x."""

    gain: Tensor
    offset: Tensor

    def move_boxes(self, boxes: Tensor, owner: Tensor) -> Tensor:
        """Boxes (k, 4) of these examples (k)."""
        corners = boxes.view(-1, 2, 2) * self.gain[owner, None] + self.offset[owner, None]
        low, high = corners.aminmax(dim=1)
        return torch.cat([low, high], dim=1)


def sample_objects(
    framed: FramedObjects, augment: ObjectAugment, row: Tensor, u: Tensor, late: Tensor, side: int
) -> Sampled:
    """The images of these rows (b), changed by u (b, CHANCE) in −1..1, as inputs of side × side; where `late` (b) is
    true, the mosaic has ended."""
    h, w = framed.placed.ground
    chosen = choose_images(row, (u + 1) / 2, ((u[:, 0] + 1) / 2 < augment.mosaic) & ~late, len(framed))
    geometry = draw_geometry(augment, u[:, 4:10], chosen.four, (h, w), side)
    items, source = find_items(framed.objects.owner, chosen.rows, len(framed))
    owner = chosen.owner[source]
    boxes = to_input(framed.objects.boxes[items], framed.back[chosen.rows][source].double()).float()
    inward = find_inward(chosen, framed.images.place(chosen.rows))
    boxes = boxes + inward[source].repeat(1, 2)
    moved = geometry.move_boxes(move_to_plane(boxes, chosen.quadrant[source], h, w), owner)
    clipped = clip_boxes(moved, side, side)
    kept = find_visible(moved, clipped, VISIBLE, SMALLEST)
    ground = torch.tensor(framed.prepare.fill, dtype=torch.float32)[:, None, None]
    pixels = roll_images(framed.images[chosen.rows], inward).movedim(3, 1).float() - ground
    x = lay_out(pixels, chosen, geometry, side, "bilinear").add_(ground).div_(255)
    masks = None
    if framed.instances is not None:
        found = roll_images(number_anew(framed, chosen, items[kept], source[kept]), inward)
        masks = lay_out(found.float()[:, None], chosen, geometry, side, "nearest")[:, 0].to(torch.uint8)
    if augment.colours:
        x = change_colours(x, augment, u[:, 10:])
    return Sampled(x, clipped[kept], owner[kept], items[kept], masks)


def choose_images(row: Tensor, v: Tensor, four: Tensor, n: int) -> Chosen:
    """The image of each row (b), and with it three others of n where it is one of four; v (b, 4..) in 0..1."""
    others = (v[:, 1:4] * n).long().clamp_max(n - 1)
    rows = torch.cat([row[:, None], others], dim=1)
    used = torch.cat([torch.ones_like(four)[:, None], four[:, None].expand(-1, 3)], dim=1)
    return Chosen(rows[used], used.nonzero()[:, 0], four)


def find_inward(chosen: Chosen, placed: Placed) -> Tensor:
    """How far right and down each image (r, 2) moves on its ground, so that the four of a mosaic meet: the left ones
    to the right edge, the upper ones to the lower edge, the others to the left and upper edges."""
    room = torch.tensor([placed.ground[1], placed.ground[0]]) - placed.sizes.flip(1)
    first = torch.stack([chosen.quadrant % 2 == 0, chosen.quadrant < 2], dim=1)
    return torch.where(chosen.four[chosen.owner, None], torch.where(first, room, 0) - placed.corner, 0)


def roll_images(x: Tensor, by: Tensor) -> Tensor:
    """Images (r, h, w, ..) moved right and down by whole pixels (r, 2), around the edges; equal moves at once."""
    if not bool(by.any()):
        return x
    moves, group = by.unique(dim=0, return_inverse=True)
    for k, (right, down) in enumerate(moves.tolist()):
        if right or down:
            x[group == k] = x[group == k].roll((down, right), (1, 2))
    return x


def draw_geometry(augment: ObjectAugment, u: Tensor, four: Tensor, ground: tuple[int, int], side: int) -> Geometry:
    """By u (b, 6): the centre of a mosaic, scale, shift, mirror."""
    size = torch.tensor([ground[1], ground[0]], dtype=torch.float32)
    away = (u[:, :2] * (0.5 - NEAR) * size).round()  # whole pixels: without a scale, pixels stay what they were
    centre = torch.where(four[:, None], size - away, size / 2)
    gain = (augment.scale * u[:, 2:3]).exp() * (side / size)
    offset = side / 2 + augment.shift * side * u[:, 3:5] - gain * centre
    sign = torch.where((u[:, 5:] + 1) / 2 < augment.flip, -1.0, 1.0)
    turned = torch.cat([sign, torch.ones_like(sign)], dim=1)
    return Geometry(gain * turned, torch.where(turned < 0, side - offset, offset))


def lay_out(x: Tensor, chosen: Chosen, geometry: Geometry, side: int, mode: str) -> Tensor:
    """Images (r, c, h, w) -> examples (b, c, side, side), 0 where there is no image."""
    found = x.new_empty(len(chosen.four), x.shape[1], side, side)
    for group in (chosen.four, ~chosen.four):
        if bool(group.any()):
            plane = x if bool(group.all()) else x[group[chosen.owner]]
            if group is chosen.four:
                plane = join_four(plane.unflatten(0, (-1, 4)))
            found[group] = warp_plane(plane, Geometry(geometry.gain[group], geometry.offset[group]), side, mode)
    return found


def warp_plane(plane: Tensor, geometry: Geometry, side: int, mode: str) -> Tensor:
    """x'(q) = x((q − offset) / gain), 0 outside: (b, c, h, w) -> (b, c, side, side)"""
    size = torch.tensor([plane.shape[3], plane.shape[2]], dtype=torch.float32)
    centres = torch.arange(side) + 0.5
    at = 2 * (centres - geometry.offset[:, :, None]) / (geometry.gain * size)[:, :, None] - 1  # −1..1 is the plane
    across, down = at[:, 0, None, :].expand(-1, side, side), at[:, 1, :, None].expand(-1, side, side)
    return grid_sample(plane, torch.stack([across, down], dim=3), mode, align_corners=False)


def number_anew(framed: FramedObjects, chosen: Chosen, items: Tensor, source: Tensor) -> Tensor:
    """The instances of the chosen images (r, h, w), each object by its number in its example, from 1; 0 for those that
    are not among the `items` (k) of the images `source` (k)."""
    assert framed.instances is not None
    counts = torch.bincount(chosen.owner[source], minlength=len(chosen.four))
    number = torch.arange(1, len(items) + 1) - (counts.cumsum(0) - counts)[chosen.owner[source]]
    table = torch.zeros(len(chosen.rows), 256, dtype=torch.long)
    table[source, framed.objects.instance_numbers[items]] = number
    old = framed.instances[chosen.rows]
    return table.gather(1, old.flatten(1).long()).view_as(old)


def change_colours(x: Tensor, augment: ObjectAugment, u: Tensor) -> Tensor:
    """Images (b, 3, h, w) in 0..1 with other hue, saturation and brightness, by u (b, 3..)."""
    angle = math.pi * augment.hue * u[:, 0]
    more, light = 1 + augment.saturation * u[:, 1], 1 + augment.brightness * u[:, 2]
    grey = torch.full((3, 3), 1 / 3)
    cross = torch.tensor([[0.0, -1, 1], [1, 0, -1], [-1, 1, 0]]) / math.sqrt(3)  # turns about the grey axis
    turn = angle.cos()[:, None, None] * (torch.eye(3) - grey) + angle.sin()[:, None, None] * cross
    matrix = light[:, None, None] * (grey + more[:, None, None] * turn)
    return torch.bmm(matrix, x.flatten(2)).clamp_(0, 1).view_as(x)
