"""Points, distances to the sides, and boxes: a round trip, and the mean of a distribution."""

from __future__ import annotations

import pytest
import torch

from descend.ops.detection.distances import boxes_to_distances, distances_to_boxes, expected_distance, make_points
from tests.close import close

pytestmark = pytest.mark.system("yolo-v8")


def test_points_are_the_centres_of_cells() -> None:
    points, strides = make_points([(2, 3), (1, 2)], [8, 16], torch.zeros(()))
    assert points.tolist() == [[4, 4], [12, 4], [20, 4], [4, 12], [12, 12], [20, 12], [8, 8], [24, 8]]
    assert strides.tolist() == [8] * 6 + [16] * 2


@pytest.mark.system("yolo-v8", "anchor-free")
def test_round_trip() -> None:
    torch.manual_seed(0)
    points, strides = make_points([(4, 5), (2, 3)], [8, 16], torch.zeros(()))
    distances = 3 * torch.rand(2, len(points), 4)
    boxes = distances_to_boxes(distances, points, strides)
    assert (boxes[..., 2:] >= boxes[..., :2]).all()
    close(boxes_to_distances(boxes, points, strides), distances)
    close(boxes[0, 7], torch.stack([20 - 8 * distances[0, 7, 0], 12 - 8 * distances[0, 7, 1],
                                    20 + 8 * distances[0, 7, 2], 12 + 8 * distances[0, 7, 3]]))  # fmt: skip


def test_the_mean_of_a_distribution() -> None:
    bins = torch.arange(16.0)
    close(expected_distance(torch.zeros(4, 16), bins), torch.full((4,), 7.5))
    sharp = torch.full((16,), -40.0)
    sharp[3] = sharp[4] = 0.0
    close(expected_distance(sharp, bins), torch.tensor(3.5))
