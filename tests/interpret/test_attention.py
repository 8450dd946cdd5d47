"""Attention over an image as maps: a ViT's class token, and queries that look at an image from outside."""

from __future__ import annotations

import pytest
import torch

from descend.errors import Mistake
from descend.interpret.attention import class_maps, query_maps
from descend.models import vit
from descend.nn.attention.maps import attention_maps
from descend.nn.attention.multi_head import Attention
from descend.nn.encoder_decoder import attention_weights
from tests.close import close

SLUG = "attention-maps-analysis"


@pytest.mark.system(SLUG, "class-maps")
def test_the_class_token_of_a_vit_as_a_map_of_patches() -> None:
    torch.manual_seed(0)
    net, x = vit.ViTForImageClassification(vit.TINY).eval(), vit.TINY_INPUT()
    height, width = x.shape[-2:]
    maps = list(attention_maps(net, x).values())
    rows, columns = height // vit.TINY.patch, width // vit.TINY.patch
    for a in maps:
        found = class_maps(a, height, width)
        assert found.shape == (len(x), vit.TINY.heads, rows, columns)
        close(found.flatten(-2).sum(-1) + a[:, :, 0, : a.shape[-1] - rows * columns].sum(-1), torch.ones(a.shape[:2]))
        assert torch.equal(found[0, 1, 0], a[0, 1, 0, -rows * columns :][:columns]), "row by row"


@pytest.mark.system(SLUG, "query-maps")
def test_queries_from_outside_look_at_the_image() -> None:
    """Object queries over an image of 96 × 128: maps of H/32 × W/32, with the peak where the key fits."""
    torch.manual_seed(0)
    attn, queries, features = Attention(8, 2), torch.randn(1, 5, 8), 0.01 * torch.randn(1, 12, 8)
    attn.k.bias.data.zero_()
    with torch.no_grad():
        q = attn.q(queries)[0, 3]
        features[0, 6] = 50 * q @ attn.k.weight  # place 6 is row 1, column 2 of 3 × 4
        a = attention_weights(attn, queries, features, None)
    maps = query_maps(a, 96, 128)
    assert maps.shape == (1, 2, 5, 3, 4)
    close(maps.sum((-1, -2)), torch.ones(1, 2, 5))
    together = maps[0, :, 3].mean(0)
    assert divmod(int(together.argmax()), 4) == (1, 2)
    with pytest.raises(Mistake, match="7 tokens"):
        query_maps(a[..., :7], 100, 100)
