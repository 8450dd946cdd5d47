"""An RGB-D camera over the table: every pixel is a ray, and every thing a box.

    ray of a pixel:   o + s R K⁻¹ (u, v, 1)ᵀ              its third number is 1 in the camera's frame, so s is the depth
    box:              in its own frame, |x_i| ≤ h_i: the ray is inside between max_i min(s_i⁻, s_i⁺) and min_i max(..)
    colour:           that of the nearest thing, darker on faces that look away from the light

All pixels, boxes and episodes at once; the table is the plane z = 0. The camera stands in front of the robot and looks
down at the table, so that the hand seldom hides what it is about to grasp. `hand_camera` is mounted on the flange as in
MF 30.3; any camera is a matrix K and a pose in SE(3).

Systems: pick-and-place, camera-geometry
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from descend.data.control.arm_world import BIN, CUBE, HAND, PAINTS, Scene
from descend.data.control.detour import PILLAR, RADIUS, TALL, DetourScene
from descend.data.toys.scenes import RGB
from descend.ops.robotics.camera import intrinsics, pixel_centres
from descend.ops.robotics.kinematics import UR10E, link_frames, tool_pose
from descend.ops.robotics.rigid import check_rigid, look_at, make_rigid

EYE, MIDDLE = (1.12, 0.0, 1.00), (0.44, 0.0, 0.02)
VIEW = 1.05  # focal length as a share of the image's width
TABLE, ARM, STEEL = (0.58, 0.56, 0.53), (0.80, 0.83, 0.87), (0.22, 0.23, 0.26)
SKY, LIGHT = (0.75, 0.82, 0.90), (0.35, -0.25, 0.90)
THICK = (0.075, 0.065, 0.055, 0.045, 0.045, 0.045)  # half the width of each link
RIM = 0.012  # height of a bin
AT_ONCE = 2**18  # rays times boxes that are computed together: bounds the memory


class View(NamedTuple):
    """What a camera sees of b scenes."""

    image: Tensor
    """(b, 3, h, w) in 0..1."""
    depth: Tensor
    """(b, h, w), in metres."""


@dataclass(frozen=True)
class Camera:
    """A pinhole camera: `pose` of a scene is (b or 1, 4, 4), from its frame to the robot's."""

    k: Tensor
    height: int
    width: int
    pose: Callable[[Scene], Tensor]


def fixed_camera(height: int, width: int = 0) -> Camera:
    """In front of the robot; square images unless a width is given, too."""
    width = width or height
    f = VIEW * width
    up = torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64)
    pose = look_at(torch.tensor(EYE, dtype=torch.float64), torch.tensor(MIDDLE, dtype=torch.float64), up)
    return Camera(intrinsics((f, f), (width / 2, height / 2)), height, width, lambda scene: pose[None])


def hand_camera(height: int = 48, width: int = 64, hand_eye: Tensor | None = None) -> Camera:
    """On the flange; `hand_eye` (4, 4) is its pose there: by default beside the hand, tilted to the finger tips."""
    if hand_eye is None:
        r = torch.tensor([[1.0, 0, 0], [0, 0.9553, -0.2955], [0, 0.2955, 0.9553]], dtype=torch.float64)
        r[:, 1:] = r[:, 1:] / r[:, 1:].norm(dim=0)
        hand_eye = make_rigid(r, torch.tensor([0.0, 0.09, -0.02], dtype=torch.float64))
    mount = check_rigid(hand_eye.double(), "hand-eye transform")
    f = 0.5 * width
    return Camera(
        intrinsics((f, f), (width / 2, height / 2)), height, width, lambda scene: tool_pose(UR10E, scene.theta) @ mount
    )


class Solids(NamedTuple):
    """n boxes in each of b scenes."""

    centre: Tensor
    """(b, n, 3)"""
    turn: Tensor
    """Columns are the axes (b, n, 3, 3)."""
    half: Tensor
    """Half the sides (b, n, 3)."""
    colour: Tensor
    """(b, n, 3)"""


def rods(start: Tensor, end: Tensor, thick: Tensor, colour: Tensor) -> Solids:
    """Boxes along lines from start to end (b, n, 3), so thick (n)."""
    along = end - start
    length = along.norm(dim=-1, keepdim=True)
    z = torch.where(length > 1e-9, along / length.clamp_min(1e-9), torch.tensor([0.0, 0, 1], dtype=along.dtype))
    helper = torch.where(z[..., :1].abs() < 0.9, torch.eye(3, dtype=z.dtype)[0], torch.eye(3, dtype=z.dtype)[1])
    x = torch.nn.functional.normalize(torch.linalg.cross(helper, z), dim=-1)
    turn = torch.stack([x, torch.linalg.cross(z, x), z], dim=-1)
    wide = thick[:, None].to(start).expand(*start.shape[:-1], 1)
    return Solids((start + end) / 2, turn, torch.cat([wide, wide, length / 2 + wide], -1), colour.expand_as(start))


def upright(centre: Tensor, half: Tensor, colour: Tensor) -> Solids:
    """Boxes (b, n, 3) along the axes of the world."""
    eye = torch.eye(3, dtype=centre.dtype).expand(*centre.shape[:-1], 3, 3)
    return Solids(centre, eye, half.to(centre).expand_as(centre), colour.to(centre).expand_as(centre))


def furnish(scene: Scene) -> Solids:
    """Everything that stands on the table: the arm, its hand, cubes and bins."""
    paints = torch.tensor([RGB[name] for name in PAINTS], dtype=torch.float64)
    frames = link_frames(UR10E, scene.theta)
    joints, flange = frames[..., :3, 3], frames[:, -1]
    arm = rods(joints[:, :-1], joints[:, 1:], torch.tensor(THICK), torch.tensor(ARM, dtype=torch.float64))
    across, along = flange[:, None, :3, 0], flange[:, None, :3, 2]
    apart = (CUBE / 2 + 0.008 + 0.035 * scene.grip)[:, None, None] * torch.tensor([[-1.0], [1.0]])
    base = flange[:, None, :3, 3] + along * 0.05 + across * apart
    steel = torch.tensor(STEEL, dtype=torch.float64)
    palm = rods(base[:, :1], base[:, 1:], torch.tensor([0.022]), steel)
    fingers = rods(base, base + along * (HAND - 0.05), torch.tensor([0.008, 0.008]), steel)
    cubes = upright(scene.cubes, torch.tensor([CUBE / 2] * 3), paints[scene.paint])
    flat = torch.cat([scene.bins, torch.full_like(scene.bins[..., :1], RIM / 2)], dim=-1)
    bins = upright(flat, torch.tensor([BIN / 2, BIN / 2, RIM / 2]), 0.55 * paints[scene.bin_paint] + 0.2)
    parts = [arm, palm, fingers, cubes, bins]
    if isinstance(scene, DetourScene):
        foot = torch.tensor([*PILLAR, TALL / 2], dtype=torch.float64).expand(len(scene), 1, 3)
        half = RADIUS / 2**0.5  # the box inside the round pillar that is judged
        parts.append(upright(foot, torch.tensor([half, half, TALL / 2]), foot.new_tensor([[[0.85, 0.45, 0.15]]])))
    return Solids(*(torch.cat(column, dim=1) for column in zip(*parts, strict=True)))


@torch.no_grad()
def render(scene: Scene, camera: Camera) -> View:
    """What the camera sees of every scene."""
    pose, solids = camera.pose(scene), furnish(scene)
    k = camera.k
    plane = (pixel_centres(camera.height, camera.width) - k[:2, 2]) / torch.diagonal(k)[:2]
    rays = torch.cat([plane, torch.ones_like(plane[:, :1])], dim=-1).float().T
    count = max(1, AT_ONCE // (rays.shape[1] * solids.centre.shape[1]))
    parts = []
    for rows in torch.arange(len(scene)).split(count):
        at = pose[rows] if len(pose) > 1 else pose
        parts.append(trace_rays(rays, at.float(), Solids(*(part[rows].float() for part in solids))))
    image, depth = (torch.cat(column) for column in zip(*parts, strict=True))
    size = (camera.height, camera.width)
    return View(image.unflatten(-1, size), depth.unflatten(-1, size))


def trace_rays(rays: Tensor, pose: Tensor, solids: Solids) -> tuple[Tensor, Tensor]:
    """Colours (b, 3, p) and depths (b, p) along rays (3, p) of the camera's frame."""
    eye, way = pose[:, :3, 3], pose[:, :3, :3] @ rays  # (b or 1, 3), (b or 1, 3, p)
    back = solids.turn.mT
    start = back @ (eye[:, None] - solids.centre)[..., None]  # in each box's own frame (b, n, 3, 1)
    inverse = (back @ way[:, None]).reciprocal_()  # (b, n, 3, p)
    middle, reach = -start * inverse, inverse.abs_().mul_(solids.half[..., None])
    first = (middle - reach).unbind(dim=2)
    last = middle.add_(reach).unbind(dim=2)
    enter = torch.maximum(torch.maximum(first[0], first[1]), first[2])
    leave = torch.minimum(torch.minimum(last[0], last[1]), last[2])
    near = torch.where((enter < leave) & (enter > 1e-4), enter, torch.inf)  # (b, n, p)
    depth, thing = near.min(dim=1)
    table = -eye[:, 2:] / way[:, 2]
    table = torch.where(table > 0, table, torch.inf).expand_as(depth)
    face = torch.stack([part.gather(1, thing[:, None])[:, 0] for part in first], dim=1).argmax(dim=1)  # (b, p)
    colour = solids.colour.mT.gather(2, thing[:, None].expand(-1, 3, -1))
    image = colour * shade_faces(solids, way)[torch.arange(len(depth))[:, None], thing, face][:, None]
    image = torch.where((depth < table)[:, None], image, torch.tensor(TABLE)[:, None])
    far = torch.minimum(depth, table)
    return torch.where((far < torch.inf)[:, None], image, torch.tensor(SKY)[:, None]).clamp(0, 1), far


def shade_faces(solids: Solids, way: Tensor) -> Tensor:
    """How bright the face of each box is that looks against the middle ray, for its three axes (b, n, 3)."""
    light = torch.nn.functional.normalize(torch.tensor(LIGHT), dim=0)
    ahead = way[:, :, way.shape[2] // 2]  # (b or 1, 3)
    against = -torch.sign((solids.turn * ahead[:, None, :, None]).sum(dim=2))
    return 0.55 + 0.45 * ((solids.turn * light[:, None]).sum(dim=2) * against).clamp_min(0)
