"""The relative position bias of patches behind a class token."""

from __future__ import annotations

import pytest
import torch

from descend.nn.attention.grid_bias import GridBias


@pytest.mark.system("beit")
def test_offsets_by_hand() -> None:
    """Pairs with the same offset share a number, others do not; the class token has three of its own."""
    rows = 3
    bias = GridBias(1, rows)
    with torch.no_grad():
        bias.table.copy_(torch.arange(28.0)[:, None])
    b = bias()[0, 0].detach()
    assert b.shape == (10, 10)
    place = {1 + i: divmod(i, rows) for i in range(9)}
    by_offset: dict[tuple[int, int], set[float]] = {}
    for i, (y, x) in place.items():
        for j, (v, u) in place.items():
            by_offset.setdefault((y - v, x - u), set()).add(float(b[i, j]))
    assert all(len(values) == 1 for values in by_offset.values())
    assert len({value for values in by_offset.values() for value in values}) == len(by_offset) == 25
    assert set(b[0, 1:].tolist()) == {25.0}
    assert set(b[1:, 0].tolist()) == {26.0}
    assert b[0, 0] == 27
