"""The best span against a search over all pairs."""

from __future__ import annotations

import pytest
import torch

from descend.ops.spans import best_span


@pytest.mark.system("encoder-fine-tuning-heads")
@pytest.mark.system("encoder-fine-tuning-heads", "span")
@pytest.mark.parametrize("longest", [1, 3, 9])
def test_against_all_pairs(longest: int) -> None:
    random = torch.Generator().manual_seed(longest)
    start, end = torch.randn(6, 9, generator=random), torch.randn(6, 9, generator=random)
    mask = torch.arange(9) >= torch.arange(6)[:, None]
    found = best_span(start, end, mask, longest)
    for b in range(6):
        pairs = [(i, j) for i in range(b, 9) for j in range(i, min(9, i + longest))]
        assert tuple(found[b].tolist()) == max(pairs, key=lambda p: float(start[b, p[0]] + end[b, p[1]]))
