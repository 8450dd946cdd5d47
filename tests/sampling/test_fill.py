"""Blanks are found and filled with the most likely tokens."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from descend.sampling.fill import blanks, fill
from tests.close import close


@pytest.mark.system("mlm")
def test_blanks_are_filled_from_the_logits() -> None:
    table = torch.randn(5, 9, generator=torch.Generator().manual_seed(0))

    def model(tokens: Tensor) -> Tensor:
        assert tokens.shape == (1, 5)
        return table[None]

    tokens = torch.tensor([3, 8, 1, 8, 2])
    found = fill(model, tokens, mask=8, k=2)
    assert found.positions.tolist() == blanks(tokens, 8).tolist() == [1, 3]
    assert found.tokens[:, 0].tolist() == table[[1, 3]].argmax(-1).tolist()
    close(found.probabilities[0], table[1].softmax(-1).sort(descending=True).values[:2])
