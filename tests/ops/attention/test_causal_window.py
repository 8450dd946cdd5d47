"""The causal window: which keys, how many, how far."""

from __future__ import annotations

import pytest
import torch

from descend.ops.attention.causal_window import reach, window_entries, window_mask
from descend.ops.attention.dot_product import causal_mask


@pytest.mark.system("causal-sliding-window", "keys", "full")
@pytest.mark.system("causal-sliding-window")
@pytest.mark.parametrize(("t", "keys"), [(1, 1), (7, 1), (7, 3), (7, 7), (7, 20)])
def test_keys(t: int, keys: int) -> None:
    mask = window_mask(t, keys)
    for i in range(t):
        assert mask[i].nonzero().flatten().tolist() == list(range(max(0, i - keys + 1), i + 1))
    assert mask.sum() == window_entries(t, keys)
    if keys >= t:
        assert torch.equal(mask, causal_mask(t))


@pytest.mark.system("causal-sliding-window", "reach")
@pytest.mark.system("causal-sliding-window")
def test_a_cache_and_the_reach_of_layers() -> None:
    assert torch.equal(window_mask(2, 3, 7), window_mask(7, 3)[-2:])
    heard = torch.linalg.matrix_power(window_mask(20, 4).double(), 3)[19] > 0
    assert int(heard.nonzero()[0]) == 19 - reach(3, 4)
