"""Blocks of hidden patches."""

from __future__ import annotations

import pytest
import torch

from descend.ops.images.block_mask import block_mask


def draws(b: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(b, 16, 4, generator=torch.Generator().manual_seed(seed))


@pytest.mark.system("beit")
def test_about_the_share_is_hidden() -> None:
    hide = block_mask(draws(500), (14, 14))
    counts = hide.sum(dim=1).float()
    assert hide.shape == (500, 196)
    assert 0.37 < float(counts.mean()) / 196 < 0.45
    assert float(counts.max()) < 0.6 * 196


@pytest.mark.system("beit")
@pytest.mark.system("beit", "blocks")
def test_hidden_patches_stand_together() -> None:
    """A hidden patch has hidden neighbours far more often than by chance."""
    hide = block_mask(draws(200), (14, 14)).view(-1, 14, 14).float()
    both = (hide[:, :, 1:] * hide[:, :, :-1]).mean() / hide.mean()
    assert float(both) > 0.75  # single patches: 0.4


@pytest.mark.system("beit")
@pytest.mark.system("beit", "blocks")
def test_one_block_by_hand() -> None:
    """6 patches at ratio 1.5: 3 rows, 2 columns, in the last corner; nothing is left after it."""
    ratio = 0.5 * (1 - torch.tensor(1.5).log() / torch.tensor(0.3).log())
    u = torch.tensor([1.0, float(ratio), 0.99, 0.99]).expand(1, 3, 4)
    hide = block_mask(u, (5, 3), share=0.4, smallest=2).view(5, 3)
    assert hide.int().tolist() == [[0, 0, 0], [0, 0, 0], [0, 1, 1], [0, 1, 1], [0, 1, 1]]


def test_a_mask_belongs_to_its_numbers() -> None:
    u = draws(6)
    assert torch.equal(block_mask(u, (4, 4), smallest=2)[2:5], block_mask(u[2:5], (4, 4), smallest=2))
    with pytest.raises(ValueError, match="of 4 x 4 patches"):
        block_mask(u, (4, 4), share=1.5)
