"""Rigid motions: the book's transform and its erratum, group laws, scipy's rotations, and what is no motion."""

from __future__ import annotations

import pytest
import torch
from scipy.spatial.transform import Rotation

from descend.errors import Mistake
from descend.ops.robotics.rigid import (
    check_rigid,
    check_rotation,
    exp_rotation,
    invert_rigid,
    log_rotation,
    look_at,
    make_rigid,
    move_points,
)
from tests.close import close

BOOK = torch.tensor([[1, 0, 0, 0], [0, 0, -1, 0.3], [0, 1, 0, 0.2], [0, 0, 0, 1]], dtype=torch.float64)
SEEN = torch.tensor([[-0.35 / 6, -0.2 / 6, 0.5]], dtype=torch.float64)


def motions(n: int) -> torch.Tensor:
    random = torch.Generator().manual_seed(n)
    v, p = torch.randn(2, n, 3, generator=random, dtype=torch.float64)
    return make_rigid(exp_rotation(v), p)


@pytest.mark.system("camera-geometry")
@pytest.mark.system("camera-geometry", "erratum")
def test_the_books_matrix_gives_other_numbers_than_it_prints() -> None:
    close(move_points(check_rigid(BOOK), SEEN), [[-0.35 / 6, -0.2, 1 / 6]], loosen=100)
    reflected = make_rigid(torch.diag(torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64)), BOOK[:3, 3])
    close(move_points(reflected, SEEN), [[-0.35 / 6, 1 / 3, 0.7]], loosen=100)
    with pytest.raises(Mistake, match="det R = -1 is a reflection"):
        check_rigid(reflected)


@pytest.mark.system("camera-geometry")
@pytest.mark.system("camera-geometry", "group")
def test_inverse_and_composition() -> None:
    a, b = motions(5), motions(5).flip(0)
    points = torch.randn(5, 4, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    close(move_points(invert_rigid(a), move_points(a, points)), points)
    close(invert_rigid(a), torch.linalg.inv(a))
    close(move_points(a @ b, points), move_points(a, move_points(b, points)))
    check_rigid(a @ invert_rigid(b))


@pytest.mark.system("camera-geometry", "group")
def test_rotations_are_scipys() -> None:
    random = torch.Generator().manual_seed(0)
    axis = torch.nn.functional.normalize(torch.randn(200, 3, generator=random, dtype=torch.float64), dim=-1)
    v = axis * torch.linspace(0, 3.14, 200, dtype=torch.float64)[:, None]
    r = torch.from_numpy(Rotation.from_rotvec(v.numpy()).as_matrix())
    close(exp_rotation(v), r)
    close(log_rotation(r), torch.from_numpy(Rotation.from_matrix(r.numpy()).as_rotvec()), loosen=100)


def test_half_turns_have_their_axis() -> None:
    axis = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [0.6, 0, 0.8]], dtype=torch.float64)
    found = log_rotation(exp_rotation(axis * torch.pi))
    close(found.norm(dim=-1), torch.full((4,), torch.pi, dtype=torch.float64))
    close((found / torch.pi * axis).sum(-1).abs(), torch.ones(4, dtype=torch.float64))
    assert log_rotation(torch.eye(3, dtype=torch.float64)).abs().max() == 0


def test_a_camera_looks_where_it_should() -> None:
    eye, target = torch.tensor([1.0, -0.5, 1.5]).double(), torch.tensor([0.5, 0.0, 0.0]).double()
    pose = check_rigid(look_at(eye, target, torch.tensor([0.0, 0.0, 1.0]).double()))
    seen = move_points(invert_rigid(pose), target[None])[0]
    close(seen, torch.tensor([0.0, 0.0, float((target - eye).norm())], dtype=torch.float64))
    above = move_points(invert_rigid(pose), (target + torch.tensor([0, 0, 0.1]))[None])[0]
    assert above[1] < 0  # what is higher is nearer to the first row
    with pytest.raises(Mistake, match="along its up direction"):
        look_at(eye, eye + torch.tensor([0, 0, 1.0]), torch.tensor([0.0, 0.0, 1.0]).double())


@pytest.mark.system("camera-geometry", "refused")
@pytest.mark.parametrize(
    ("r", "message"),
    [
        (torch.diag(torch.tensor([1.0, 1.0, -1.0])), "det R = -1 is a reflection"),
        (torch.diag(torch.tensor([2.0, 1.0, 1.0])), "off by 3"),
        (torch.eye(3) + 1e-3 * torch.ones(3, 3), "off by 0.002"),
        (torch.full((3, 3), float("nan")), "not finite"),
        (torch.eye(2), "3×3, not 2×2"),
    ],
)
def test_what_is_no_rotation_is_refused_with_its_deviation(r: torch.Tensor, message: str) -> None:
    with pytest.raises(Mistake, match=message):
        check_rotation(r)
    if r.shape == (3, 3):
        with pytest.raises(Mistake, match=message):
            check_rigid(make_rigid(r, torch.zeros(3)), "hand-eye")


@pytest.mark.system("camera-geometry", "refused")
def test_the_last_row_is_checked() -> None:
    wrong = torch.eye(4)
    wrong[3, 0] = 0.5
    with pytest.raises(Mistake, match=r"hand-eye: not in SE\(3\): the last row must be 0, 0, 0, 1; .* off by 0.5"):
        check_rigid(wrong, "hand-eye")
    with pytest.raises(Mistake, match="4×4, not 3×3"):
        check_rigid(torch.eye(3))
