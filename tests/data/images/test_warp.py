"""Warped images: nothing at zero, exact where a warp is a whole pixel or a quarter turn."""

from __future__ import annotations

import math

import torch
from scipy.ndimage import affine_transform
from torch import Tensor

from descend.data.images.warp import Warp, Warped
from descend.data.streams.arrays import Shuffled
from tests.close import close

X = torch.rand(3, 2, 8, 8, generator=torch.Generator().manual_seed(0))


def u(*values: float) -> Tensor:
    return torch.tensor(values).expand(len(X), 4)


def test_zero_leaves_images_alone() -> None:
    close(Warp(0.3, 40.0, 0.5)(X, u(0, 0, 0, 0)), X)
    assert Warp().idle
    assert not Warp(turn=1.0).idle


def test_a_shift_of_one_pixel() -> None:
    moved = Warp(shift=1 / 8)(X, u(1, 0, 0, 0))
    close(moved[..., :-1], X[..., 1:])
    assert torch.equal(moved[..., -1], torch.zeros(3, 2, 8))  # black comes in
    close(Warp(shift=1 / 8)(X, u(0, -1, 0, 0))[..., 1:, :], X[..., :-1, :])


def test_a_mirror_at_the_edge() -> None:
    moved = Warp(shift=3 / 8, outside="reflection")(X, u(1, 0, 0, 0))
    close(moved, torch.cat([X[..., 3:], X[..., 5:].flip(-1)], dim=-1))


def test_a_quarter_turn() -> None:
    close(Warp(turn=90.0)(X, u(0, 0, 1, 0)), torch.rot90(X, 1, dims=(-2, -1)))
    close(Warp(turn=90.0)(X, u(0, 0, -1, 0)), torch.rot90(X, -1, dims=(-2, -1)))


def test_equal_to_scipy_inside_the_image() -> None:
    """A turn of 20° with a zoom of 0.1, against scipy's linear interpolation about the centre."""
    warped = Warp(turn=20.0, zoom=0.1)(X, u(0, 0, 1, -1))
    size, theta = math.exp(-0.1), math.radians(20)
    rows = torch.tensor([[math.cos(theta), math.sin(theta)], [-math.sin(theta), math.cos(theta)]]) * size
    centre = torch.full((2,), 3.5)
    offset = centre - rows @ centre
    theirs = affine_transform(X[0, 0].numpy(), rows.numpy(), offset.numpy(), order=1)
    close(warped[0, 0, 2:-2, 2:-2], torch.from_numpy(theirs)[2:-2, 2:-2])


def test_the_stream_gives_each_image_its_own_warp() -> None:
    same = {"x": X[:1].expand(6, 2, 8, 8).contiguous(), "y": torch.arange(6)}
    stream, again = (Warped(Shuffled(same, 6, chance=4), Warp(0.1, 10.0, 0.1)) for _ in range(2))
    first, second = next(stream), next(stream)
    assert set(first) == {"x", "y", "ids"}
    assert len(torch.cat([first["x"], second["x"]]).flatten(1).unique(dim=0)) == 12
    again.load_state_dict({"epoch": 1, "position": 0})
    assert torch.equal(next(again)["x"], second["x"])
    assert stream.state_dict() == again.state_dict()
