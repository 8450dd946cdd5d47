from __future__ import annotations

import math

import pytest
import torch

from descend.ops.boxes import to_centre
from descend.ops.detection.coding import LIMIT, RCNN, decode_offsets, encode_offsets
from tests.close import close


def boxes(n: int, seed: int) -> torch.Tensor:
    random = torch.Generator().manual_seed(seed)
    low = torch.rand(n, 2, generator=random, dtype=torch.float64) * 80
    return torch.cat([low, low + 1 + torch.rand(n, 2, generator=random, dtype=torch.float64) * 40], dim=-1)


@pytest.mark.system("anchor-boxes", "offsets")
@pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0, 1.0), RCNN])
def test_offsets_number_by_number(weights: tuple[float, float, float, float]) -> None:
    box, anchor = boxes(20, 0), boxes(20, 1)
    expected = []
    for (cx, cy, w, h), (ax, ay, aw, ah) in zip(to_centre(box).tolist(), to_centre(anchor).tolist(), strict=True):
        plain = [(cx - ax) / aw, (cy - ay) / ah, math.log(w / aw), math.log(h / ah)]
        expected.append([t * weight for t, weight in zip(plain, weights, strict=True)])
    offsets = encode_offsets(box, anchor, weights)
    close(offsets, torch.tensor(expected, dtype=torch.float64))
    close(decode_offsets(offsets, anchor, weights), box)


def test_bounds() -> None:
    """An exponential that would overflow is bounded; a box without area has finite offsets."""
    anchor = torch.tensor([0.0, 0, 16, 16])
    large = to_centre(decode_offsets(torch.tensor([0.0, 0, 500, 500]), anchor, limit=LIMIT))
    close(large[2:], torch.tensor([1000.0, 1000.0]))
    assert encode_offsets(torch.tensor([3.0, 3, 3, 3]), anchor).isfinite().all()
    assert encode_offsets(anchor, torch.tensor([3.0, 3, 3, 3])).isfinite().all()
