"""Looking and reading: which coloured things are where, in words and in space, and which of them a request means.

    image -> detector -> boxes with classes -> a sentence          "a red cube on the left, a blue bin on the right"
    request -> two colours -> the boxes of these classes           "pick red, place blue"
    box, depth -> points of its pixels -> the middle of its top     in the robot's frame

It stands where MF 30.6 has a large vision-language model (GPT-4V, Flamingo): image in, text and target out. The
detector may be any that keeps the contract (`contracts.Detects`); `ColourDetector` needs no training, since in this
world a colour tells what a thing is.

Systems: vlm-to-policy, perception-control-pipeline
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import normalize

from descend.contracts import Boxes, Detects
from descend.data.control.arm_camera import ARM, RIM, STEEL, TABLE, Camera
from descend.data.control.arm_world import CUBE, PAINTS
from descend.data.control.instructions import Request, understand
from descend.data.toys.scenes import RGB
from descend.errors import Mistake
from descend.ops.robotics.camera import back_project, pixel_centres
from descend.ops.robotics.rigid import check_rigid, move_points

LABELS = (*(f"{paint} cube" for paint in PAINTS), *(f"{paint} bin" for paint in PAINTS))
"""The classes of things on the table."""
ALIKE = 0.985  # least cosine of a pixel's colour with that of a thing
FEWEST = 3  # pixels of a thing
LAYER = 0.006  # metres from its height that count as the top of a thing


class ColourDetector:
    """Pixels by the direction of their colour, things by the extent of their pixels: images (b, 3, h, w) -> Boxes."""

    stride = 1

    def __init__(self) -> None:
        cubes = torch.tensor([RGB[name] for name in PAINTS])
        others = torch.tensor([TABLE, ARM, STEEL])
        self.colours = normalize(torch.cat([cubes, 0.55 * cubes + 0.2, others]), dim=-1)

    def __call__(self, x: Tensor) -> Tensor:
        """The class of every pixel, or −1 (b, h, w)."""
        like, best = (normalize(x.movedim(1, -1), dim=-1) @ self.colours.T).max(dim=-1)
        return best.masked_fill((best >= len(LABELS)) | (like < ALIKE), -1)

    def decode(self, found: Tensor, least: float = 0.001, most: int = 100) -> Boxes:
        b, height, width = found.shape
        seen = found[:, None] == torch.arange(len(LABELS))[:, None, None]  # (b, classes, h, w)
        columns, rows = seen.any(dim=2), seen.any(dim=3)
        corners = [line.int().argmax(dim=2) for line in (columns, rows)]
        ends = [size - line.flip(2).int().argmax(dim=2) for line, size in ((columns, width), (rows, height))]
        there = seen.sum((2, 3)) >= FEWEST
        classes = torch.arange(len(LABELS)).expand(b, -1).masked_fill(~there, -1)
        return Boxes(torch.stack([*corners, *ends], dim=-1).float(), classes, there.float())


class Grounded(NamedTuple):
    """Where the things are that a request means, in the robot's frame."""

    cube: Tensor
    """Centres (b, 3)."""
    place: Tensor
    """Middles of the bins (b, 2); NaN where the request names none."""
    request: Request


@dataclass(frozen=True)
class SceneReader:
    """A detector of LABELS and a camera that is calibrated."""

    camera: Camera
    detector: Detects

    def detect(self, image: Tensor) -> Boxes:
        """The things in images (b, 3, h, w)."""
        return self.detector.decode(self.detector(image))

    def describe(self, image: Tensor) -> list[str]:
        """Each image in words, from left to right."""
        boxes = self.detect(image)
        return [describe_boxes(*row, image.shape[-1]) for row in zip(boxes.boxes, boxes.classes, strict=True)]

    def ground(self, text: str, image: Tensor, depth: Tensor, pose: Tensor) -> Grounded:
        """What a request means in images with depths (b, h, w), seen from a pose (b or 1, 4, 4)."""
        return self.place(text, self.detect(image), depth, pose)

    def place(self, text: str, boxes: Boxes, depth: Tensor, pose: Tensor) -> Grounded:
        """The same from what was detected."""
        request = understand(text)
        cube = self.locate(self.choose(boxes, request.cube), depth, pose, CUBE)
        cube[:, 2] -= CUBE / 2
        if request.bin < 0:
            return Grounded(cube, torch.full_like(cube[:, :2], torch.nan), request)
        place = self.locate(self.choose(boxes, len(PAINTS) + request.bin), depth, pose, RIM)
        return Grounded(cube, place[:, :2], request)

    def choose(self, boxes: Boxes, wanted: int) -> Tensor:
        """The box of a class in every image (b, 4); where it is not there, what is there is told."""
        score = boxes.scores.masked_fill(boxes.classes != wanted, -1)
        best, at = score.max(dim=1)
        if bool((best < 0).any()):
            row = int((best < 0).nonzero()[0])
            seen = ", ".join(LABELS[int(k)] for k in boxes.classes[row] if k >= 0) or "nothing"
            raise Mistake(f"no {LABELS[wanted]} can be seen; what can be seen: {seen}")
        return boxes.boxes[torch.arange(len(at)), at]

    def locate(self, box: Tensor, depth: Tensor, pose: Tensor, tall: float) -> Tensor:
        """The middle of the top of what is in a box (b, 4), for a thing so tall that stands on the table: (b, 3)

        Points of a box that lie higher belong to what hides the thing, the hand for example."""
        check_rigid(pose, "camera pose")
        pixels = pixel_centres(depth.shape[1], depth.shape[2])
        rays = pixels[None].expand(len(depth), -1, -1)
        points = move_points(pose, back_project(rays, depth.flatten(1).double(), self.camera.k))
        u, v = pixels.T
        x0, y0, x1, y1 = box[:, None].unbind(-1)
        inside = (u > x0) & (u < x1) & (v > y0) & (v < y1)
        weight = (inside & ((points[..., 2] - tall).abs() < LAYER)).double()[..., None]
        count = weight.sum(dim=1)
        if bool((count == 0).any()):
            raise Mistake(f"nothing in the box is {tall:g} m high: it is hidden, or no thing of that size")
        return (points * weight).sum(dim=1) / count


def describe_boxes(boxes: Tensor, classes: Tensor, width: int) -> str:
    """a red cube on the left, a blue bin on the right"""
    middle = (boxes[:, 0] + boxes[:, 2]) / 2
    order = [int(i) for i in middle.argsort() if classes[int(i)] >= 0]
    side = lambda i: "left" if middle[i] < width / 3 else "right" if middle[i] > 2 * width / 3 else "middle"
    return ", ".join(
        f"a {LABELS[int(classes[i])]} {'in' if side(i) == 'middle' else 'on'} the {side(i)}" for i in order
    ) or ("an empty table")
