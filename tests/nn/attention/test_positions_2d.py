"""Learned positions on another grid."""

from __future__ import annotations

import pytest
import torch

from descend.nn.attention.positions_2d import resize_positions, similarity
from tests.close import close


@pytest.mark.system("vit-pretrain-finetune")
@pytest.mark.system("vit-pretrain-finetune", "same-grid")
def test_the_same_grid_is_the_identity_and_special_rows_are_untouched() -> None:
    torch.manual_seed(0)
    positions = torch.randn(1, 2 + 12, 5)
    assert resize_positions(positions, (3, 4), (3, 4)) is positions
    larger = resize_positions(positions, (3, 4), (6, 7))
    assert larger.shape == (1, 2 + 42, 5)
    assert torch.equal(larger[:, :2], positions[:, :2])


@pytest.mark.system("vit-pretrain-finetune")
@pytest.mark.system("vit-pretrain-finetune", "resolution")
def test_interpolation_goes_in_two_dimensions() -> None:
    """What changes with the row alone still does, in order; a grid turned on its side gives the result turned."""
    row = torch.arange(8.0)[:, None, None].expand(8, 6, 1)
    found = resize_positions(row.reshape(1, 48, 1), (8, 6), (16, 12)).view(16, 12)
    close(found, found[:, :1].expand(16, 12))
    assert (found[:, 0].diff() > 0).all()
    close(found[7:9, 0].mean(), torch.tensor(3.5))
    turned = resize_positions(row.transpose(0, 1).reshape(1, 48, 1), (6, 8), (12, 16)).view(12, 16)
    close(turned, found.T)


@pytest.mark.system("class-token")
@pytest.mark.system("class-token", "similarity")
def test_similarity_shows_the_grid() -> None:
    """Positions made of a row part and a column part: a patch is most like itself, then its row and its column."""
    torch.manual_seed(0)
    rows, columns = torch.linalg.qr(torch.randn(16, 16))[0].split([4, 12])
    positions = torch.cat([torch.randn(1, 16), (rows[:, None] + columns[:4]).flatten(0, 1)])[None]
    found = similarity(positions, (4, 4))
    assert found.shape == (16, 4, 4)
    close(found[5, 1, 1], torch.tensor(1.0))
    close(found[5, 1, [0, 2, 3]], torch.full((3,), 0.5))
    assert float(found[5, [0, 2, 3], 0].abs().max()) < 1e-6


def test_too_few_positions() -> None:
    with pytest.raises(ValueError, match="11 positions are not enough for a grid of 3 x 4"):
        resize_positions(torch.zeros(1, 11, 2), (3, 4), (6, 8))
