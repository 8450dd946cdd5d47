"""The vector of a text: padding has no say, its length is 1."""

from __future__ import annotations

import torch

from descend.nn.pooling import mean_pool, sentence_vector
from tests.close import close


def test_padding_has_no_say() -> None:
    x = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(0))
    mask = torch.arange(5) < torch.tensor([5, 2])[:, None]
    close(mean_pool(x, mask), torch.stack([x[0].mean(0), x[1, :2].mean(0)]))
    close(mean_pool(x), x.mean(1))
    close(sentence_vector(x, mask).norm(dim=-1), torch.ones(2))
    assert torch.equal(mean_pool(x, torch.zeros(2, 5, dtype=torch.bool)), torch.zeros(2, 4))
