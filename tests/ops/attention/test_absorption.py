"""Absorbed matrices: equal without rotary positions, one for every distance with them."""

from __future__ import annotations

import pytest
import torch

from descend.ops.attention.absorption import absorb, absorb_with_rope, spread
from descend.ops.attention.rotary import frequencies, rotation
from tests.close import close


@pytest.mark.system("multi-head-latent-attention", "absorption")
@pytest.mark.system("multi-head-latent-attention")
def test_absorption_and_its_conflict_with_rope() -> None:
    g = torch.Generator().manual_seed(0)
    w_q, w_uk, h, c = (torch.randn(s, dtype=torch.float64, generator=g) for s in ((4, 6), (4, 3), (5, 6), (5, 3)))
    close((h @ w_q.T) @ (c @ w_uk.T).T, h @ absorb(w_q, w_uk) @ c.T)
    theta = frequencies(4, dtype=torch.float64)
    apart = torch.arange(5.0, dtype=torch.float64)[:, None] * theta
    middle = absorb_with_rope(w_q, w_uk, apart)
    close(middle[0], absorb(w_q, w_uk))
    for i, j in ((0, 3), (2, 4)):  # (R_i q)·(R_j k)
        q, k = rotation(i * theta) @ w_q @ h[i], rotation(j * theta) @ w_uk @ c[j]
        close(q @ k, h[i] @ middle[j - i] @ c[j])
    assert spread(middle) > 0.1
    assert spread(absorb(w_q, w_uk).expand(5, 6, 3)) == 0
