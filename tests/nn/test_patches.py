"""Patches: cut, put back, and embedded as a product or as a strided convolution."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck

from descend.nn.patches import PatchEmbedding, grid_of, patchify, unpatchify
from tests.close import close


@pytest.mark.system("patch-embedding")
@pytest.mark.system("patch-embedding", "round-trip")
@settings(max_examples=20, derandomize=True, deadline=None)
@given(b=st.integers(1, 3), c=st.integers(1, 4), rows=st.integers(1, 4), columns=st.integers(1, 4), p=st.integers(1, 4))
def test_there_and_back(b: int, c: int, rows: int, columns: int, p: int) -> None:
    x = torch.arange(b * c * rows * p * columns * p).double().view(b, c, rows * p, columns * p)
    patches = patchify(x, p)
    assert patches.shape == (b, rows * columns, c * p * p)
    assert torch.equal(unpatchify(patches, p, (rows, columns)), x)
    assert torch.equal(patches, F.unfold(x, p, stride=p).transpose(1, 2))  # torch's own order: channel, row, column


@pytest.mark.system("patch-embedding")
@pytest.mark.system("patch-embedding", "round-trip")
def test_a_patch_by_hand() -> None:
    """The patch in row 1, column 0 of a 4 x 6 image with two channels."""
    x = torch.arange(48.0).view(1, 2, 4, 6)
    assert patchify(x, 2)[0, 3].tolist() == [12, 13, 18, 19, 36, 37, 42, 43]
    assert grid_of(4, 6, 2) == (2, 3)


@pytest.mark.system("patch-embedding")
@pytest.mark.system("patch-embedding", "convolution")
def test_linear_form_is_the_strided_convolution() -> None:
    torch.manual_seed(0)
    embed, x = PatchEmbedding(3, 5, 4).double(), torch.randn(2, 3, 8, 12, dtype=torch.float64)
    conv = F.conv2d(x, embed.weight, embed.bias, stride=4)
    close(embed(x), conv.flatten(2).transpose(1, 2))
    small = torch.randn(1, 3, 4, 8, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x, w, b: F.linear(patchify(x, 4), w.flatten(1), b), (small, embed.weight, embed.bias))


@pytest.mark.system("patch-embedding")
@pytest.mark.system("patch-embedding", "sizes")
def test_sizes_of_the_books() -> None:
    assert patchify(torch.empty(1, 3, 224, 224, device="meta"), 16).shape == (1, 196, 768)
    with torch.device("meta"):
        assert sum(p.numel() for p in PatchEmbedding(3, 768, 16).parameters()) == 590_592
        assert PatchEmbedding(3, 8, 16, bias=False).bias is None


@pytest.mark.system("patch-embedding")
@pytest.mark.system("patch-embedding", "refused")
def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="patches of 16 x 16 do not tile an image of 224 x 230; resize or pad it"):
        patchify(torch.zeros(1, 3, 224, 230), 16)
    with pytest.raises(ValueError, match="not 2 x 3 patches of 2 x 2"):
        unpatchify(torch.zeros(1, 5, 4), 2, (2, 3))
    with pytest.raises(ValueError, match=r"these patches take \(batch, 3, H, W\)"):
        PatchEmbedding(3, 8, 4)(torch.zeros(1, 1, 8, 8))
