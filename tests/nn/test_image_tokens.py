"""The class token, the positions, and what they are for."""

from __future__ import annotations

import pytest
import torch

from descend.nn.encoder import Encoder, PreNormBlock
from descend.nn.image_tokens import DistilledTokens, ImageTokens
from descend.nn.patches import patchify, unpatchify
from tests.close import close


@pytest.mark.system("class-token")
@pytest.mark.system("class-token", "token")
def test_a_token_more_and_positions_for_all() -> None:
    torch.manual_seed(0)
    tokens, x = ImageTokens(3, 8, 4, 16), torch.randn(2, 3, 8, 8)
    found = tokens(x)
    assert found.shape == (2, 5, 16)
    assert tokens.positions.shape == (1, 5, 16)
    close(found[:, 0], (tokens.cls + tokens.positions[:, :1])[0].expand(2, -1))  # the same for every image
    close(found[:, 1:], tokens.patches(x) + tokens.positions[:, 1:])


@pytest.mark.system("class-token")
@pytest.mark.system("deit")
@pytest.mark.system("deit", "tokens")
def test_two_tokens() -> None:
    tokens, x = DistilledTokens(1, 8, 4, 16), torch.randn(2, 1, 8, 8)
    found = tokens(x)
    assert found.shape == (2, 6, 16)
    close(found[:, 1], (tokens.distil + tokens.positions[:, 1:2])[0].expand(2, -1))
    assert tokens.positions_at(12).shape == (1, 2 + 9, 16)


@pytest.mark.system("class-token")
@pytest.mark.system("class-token", "order")
@pytest.mark.system("vit")
@pytest.mark.system("vit", "order")
def test_without_positions_the_order_of_patches_does_not_matter() -> None:
    torch.manual_seed(0)
    tokens = ImageTokens(1, 12, 4, 16).double()
    encoder = Encoder(PreNormBlock(16, 4, 32, torch.nn.GELU()) for _ in range(2)).double()
    x, order = torch.randn(2, 1, 12, 12, dtype=torch.float64), torch.randperm(9)
    moved = unpatchify(patchify(x, 4)[:, order], 4, (3, 3))
    cls = [encoder(tokens(image))[:, 0] for image in (x, moved)]
    assert not torch.allclose(*cls, atol=1e-6)
    with torch.no_grad():  # positions moved along with their patches
        there = tokens.positions.clone()
        tokens.positions[:, 1:] = there[:, 1:][:, order]
        close(encoder(tokens(moved))[:, 0], cls[0])
        tokens.positions.zero_()
    close(*(encoder(tokens(image))[:, 0] for image in (x, moved)))


def test_images_of_another_side() -> None:
    with pytest.raises(ValueError, match="images of 12 x 8, but this model has positions for 8 x 8"):
        ImageTokens(1, 8, 4, 16)(torch.zeros(1, 1, 12, 8))
