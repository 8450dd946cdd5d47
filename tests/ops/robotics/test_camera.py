"""The pinhole camera: the book's numbers, the way there and back, and what is refused."""

from __future__ import annotations

import pytest
import torch

from descend.errors import Mistake
from descend.ops.robotics.camera import (
    back_project,
    box_centre,
    check_intrinsics,
    depth_at,
    intrinsics,
    pixel_centres,
    project,
)
from tests.close import close

K = intrinsics((600.0, 600.0), (320.0, 240.0))


@pytest.mark.system("camera-geometry")
@pytest.mark.system("camera-geometry", "back-projection")
def test_the_books_box_is_where_the_book_says() -> None:
    centre = box_centre(torch.tensor([200.0, 150.0, 300.0, 250.0], dtype=torch.float64))
    close(centre, torch.tensor([250.0, 200.0], dtype=torch.float64))
    close(back_project(centre, torch.tensor(0.5, dtype=torch.float64), K), [-0.35 / 6, -0.2 / 6, 0.5], loosen=100)


@pytest.mark.system("camera-geometry")
@pytest.mark.system("camera-geometry", "back-projection")
def test_project_undoes_back_project_and_is_the_matrix_product() -> None:
    random = torch.Generator().manual_seed(0)
    k = intrinsics((500.0, 620.0), (300.0, 250.0))
    points = torch.randn(4, 7, 3, generator=random, dtype=torch.float64)
    points[..., 2] = points[..., 2].abs() + 0.1
    pixels = project(points, k)
    close(back_project(pixels, points[..., 2], k), points)
    homogeneous = points @ k.T
    close(pixels, homogeneous[..., :2] / homogeneous[..., 2:])


def test_a_depth_image_is_read_in_the_middle_of_each_box() -> None:
    depth = torch.arange(2 * 4 * 5).view(2, 4, 5).float() + 1
    boxes = torch.tensor([[[0, 0, 2, 2], [3, 1, 5, 3]], [[0, 0, 1, 1], [9, 9, 11, 11]]]).float()
    assert depth_at(depth, boxes).tolist() == [[7.0, 15.0], [21.0, 40.0]]


def test_pixels_are_counted_row_by_row_from_their_centres() -> None:
    assert pixel_centres(2, 3).tolist() == [[0.5, 0.5], [1.5, 0.5], [2.5, 0.5], [0.5, 1.5], [1.5, 1.5], [2.5, 1.5]]


@pytest.mark.system("camera-geometry", "refused")
@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (lambda: intrinsics((0.0, 600.0), (0.0, 0.0)), "focal lengths 0 and 600"),
        (lambda: check_intrinsics(torch.diag(torch.tensor([600.0, -600.0, 1.0]))), "focal lengths 600 and -600"),
        (lambda: check_intrinsics(K + torch.tensor([[0.0, 3.0, 0], [0, 0, 0], [0, 0, 0]])), "without skew"),
        (lambda: check_intrinsics(torch.eye(4)), "3×3"),
        (lambda: project(torch.tensor([0.0, 0.0, -1.0]), K), "depth -1 is behind the camera"),
        (lambda: back_project(torch.zeros(2), torch.tensor(0.0), K), "depth 0: it must be above 0"),
        (lambda: back_project(torch.zeros(2), torch.tensor(float("nan")), K), "depth nan"),
    ],
)
def test_what_is_no_camera_is_refused(broken, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(Mistake, match=message):
        broken()


def test_a_camera_matrix_is_given_back() -> None:
    assert check_intrinsics(K) is K
