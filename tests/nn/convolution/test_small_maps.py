"""The matrix form of a convolution is torch's convolution, and is taken where it should be."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from descend.nn.convolution.small_maps import Convolution, matrix_convolution
from tests.close import close


@settings(max_examples=25, derandomize=True, deadline=None)
@given(
    st.integers(1, 3),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(3, 7),
    st.integers(3, 7),
    st.sampled_from([1, 3, 5]),
    st.integers(1, 3),
)
def test_the_matrix_form(b: int, c: int, o: int, h: int, w: int, kernel: int, stride: int) -> None:
    random = torch.Generator().manual_seed(0)
    x = torch.randn(b, c, h, w, generator=random, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(o, c, kernel, kernel, generator=random, dtype=torch.float64, requires_grad=True)
    ours = matrix_convolution(x, weight, stride, kernel // 2)
    theirs = F.conv2d(x, weight, stride=stride, padding=kernel // 2)
    close(ours, theirs)
    g = torch.randn(theirs.shape, generator=random, dtype=torch.float64)
    for a, e in zip(*(torch.autograd.grad(y, (x, weight), g) for y in (ours, theirs)), strict=True):
        close(a, e)


@pytest.mark.parametrize(("side", "pixels"), [(2, 8), (9, 162)])
def test_both_sides_of_the_choice(side: int, pixels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """16 channels of 3×3 are 144 weights: the matrix form up to 9 output pixels."""
    layer, x = Convolution(16, 5, 3), torch.randn(2, 16, side, side, generator=torch.Generator().manual_seed(0))
    called: list[int] = []

    def watched(*inputs: object) -> object:
        called.append(1)
        return matrix_convolution(*inputs)  # type: ignore[arg-type]

    monkeypatch.setattr("descend.nn.convolution.small_maps.matrix_convolution", watched)
    close(layer(x), F.conv2d(x, layer.weight, padding=1))
    assert bool(called) == (16 * pixels <= 144)
