"""Convolution: four forms that agree, torch, numpy and scipy as oracles, gradients by hand, layouts."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from descend.ops.images.convolution import (
    Slide,
    backward,
    convolve,
    convolve_fully,
    correlation_at,
    cross_correlate,
    distinct_entries,
    from_input_first,
    from_kernel_first,
    is_toeplitz,
    layer,
    layer_by_columns,
    matrix,
    same,
    toeplitz,
    windows,
)
from tests.close import close

TORCH = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, tuple[int, ...], tuple[int, ...], Slide, int, int]:
    axes = draw(st.integers(1, 3))
    number = lambda low, high: tuple(draw(st.integers(low, high)) for _ in range(axes))
    kernel, stride, padding, dilation = number(1, 3), number(1, 3), number(0, 2), number(1, 2)
    size = tuple(draw(st.integers(d * (k - 1) + 1, 6)) for k, d in zip(kernel, dilation, strict=True))
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    slide = Slide(stride, padding, dilation, groups)
    return axes, size, kernel, slide, groups * draw(st.integers(1, 2)), groups * draw(st.integers(1, 2))


@pytest.mark.system("convolution-and-cross-correlation")
@pytest.mark.system("convolution-and-cross-correlation", "dimensions", "no-flip")
@pytest.mark.system("conv2d-layer")
@pytest.mark.system("conv2d-layer", "forms")
@pytest.mark.system("conv-as-structured-matrix")
@pytest.mark.system("conv-as-structured-matrix", "matrix")
@pytest.mark.system("grouped-and-depthwise-convolution")
@pytest.mark.system("padding-and-stride-arithmetic")
@pytest.mark.system("padding-and-stride-arithmetic", "each-axis")
@settings(max_examples=40, deadline=None, derandomize=True)
@given(cases())
def test_four_forms_agree(case: tuple[int, tuple[int, ...], tuple[int, ...], Slide, int, int]) -> None:
    """Readable, columns, matrix, torch: 1-D to 3-D, with S, P, D of its own for each axis, and groups."""
    axes, size, kernel, slide, c_in, c_out = case
    x, w, b = normal(2, c_in, *size), normal(c_out, c_in // slide.groups, *kernel, seed=1), normal(c_out, seed=2)
    expected = TORCH[axes](x, w, b, slide.stride, slide.padding, slide.dilation, slide.groups)
    close(layer(x, w, b, slide), expected)
    close(layer_by_columns(x, w, b, slide), expected)
    product = (x.flatten(1) @ matrix(w, size, slide).T).view(expected.shape)
    close(product + b.view(-1, *(1,) * axes), expected)


@pytest.mark.system("conv2d-layer")
@pytest.mark.system("conv2d-layer", "forms")
def test_against_plain_loops() -> None:
    """DLN: O(n, i) = b(i) + Σ_j k(i, j) ⋆ x(n, j); DLD 4.3: x(i S_h + u D_h − P_h, ..), 0 outside."""
    x, w, b = normal(2, 3, 5, 6), normal(4, 3, 3, 2, seed=1), normal(4, seed=2)
    slide = Slide((2, 1), (1, 2), (1, 2))
    y = layer(x, w, b, slide)
    for o, i, j in ((0, 0, 0), (3, 1, 2), (2, y.shape[2] - 1, y.shape[3] - 1)):
        total = b[o].clone()
        for c in range(3):
            for u in range(3):
                for v in range(2):
                    row, column = 2 * i + u - 1, j + 2 * v - 2
                    if 0 <= row < 5 and 0 <= column < 6:
                        total += w[o, c, u, v] * x[1, c, row, column]
        close(y[1, o, i, j], total)


@pytest.mark.system("conv2d-layer")
@pytest.mark.system("conv2d-layer", "backward")
@pytest.mark.system("grouped-and-depthwise-convolution")
@pytest.mark.system("grouped-and-depthwise-convolution", "backward")
@pytest.mark.parametrize("slide", [Slide(), Slide(2, 1), Slide((1, 2), (0, 2), (2, 1), 2)])
def test_gradients_by_hand(slide: Slide) -> None:
    x, w, b = normal(2, 4, 6, 5), normal(6, 4 // slide.groups, 3, 2, seed=1), normal(6, seed=2)
    leaves = [value.requires_grad_() for value in (x, w, b)]
    y = F.conv2d(x, w, b, slide.stride, slide.padding, slide.dilation, slide.groups)
    g = normal(*y.shape, seed=3)
    for ours, theirs in zip(backward(x, w, g, slide), torch.autograd.grad(y, leaves, g), strict=True):
        close(ours, theirs)


@pytest.mark.system("conv2d-layer")
@pytest.mark.system("conv2d-layer", "backward")
def test_gradcheck() -> None:
    x, w, b = (value.requires_grad_() for value in (normal(1, 2, 4, 4), normal(2, 2, 2, 2, seed=1), normal(2, seed=2)))
    for form in (layer, layer_by_columns):
        assert torch.autograd.gradcheck(lambda x, w, b, form=form: form(x, w, b, Slide(2, 1)), (x, w, b))
    assert torch.autograd.gradcheck(lambda w: matrix(w, (4, 4), Slide(2, 1)), (w,))


@pytest.mark.system("convolution-and-cross-correlation")
@pytest.mark.system("convolution-and-cross-correlation", "dimensions")
def test_one_signal_against_numpy_and_scipy() -> None:
    x, k = normal(9), normal(3, seed=1)
    close(convolve(x, k), torch.from_numpy(np.convolve(x.numpy(), k.numpy(), "valid")))
    close(cross_correlate(x, k), torch.from_numpy(np.correlate(x.numpy(), k.numpy(), "valid")))
    close(convolve(x, k, same(k)), torch.from_numpy(np.convolve(x.numpy(), k.numpy(), "same")))
    close(convolve_fully(x, k), torch.from_numpy(np.convolve(x.numpy(), k.numpy(), "full")))
    for shape, kernel in (((6, 7), (3, 2)), ((4, 5, 4), (2, 3, 2))):
        x, k = normal(*shape), normal(*kernel, seed=1)
        for mode, ours in (("valid", convolve(x, k)), ("full", convolve_fully(x, k))):
            close(ours, torch.from_numpy(scipy.signal.convolve(x.numpy(), k.numpy(), mode, "direct")))
        close(cross_correlate(x, k), torch.from_numpy(scipy.signal.correlate(x.numpy(), k.numpy(), "valid", "direct")))


@pytest.mark.system("convolution-and-cross-correlation")
@pytest.mark.system("convolution-and-cross-correlation", "flip")
def test_convolution_flips_and_commutes() -> None:
    x, k = normal(5, 6), normal(3, 3, seed=1)
    close(convolve(x, k), cross_correlate(x, k.flip(0, 1)))
    close(convolve_fully(x, k), convolve_fully(k, x))
    gap = (cross_correlate(x, k) - convolve(x, k)).abs().max()
    assert gap > 0.1, "without a flip it would be the same"


@pytest.mark.system("convolution-and-cross-correlation")
@pytest.mark.system("convolution-and-cross-correlation", "middle-term")
def test_erratum_of_the_middle_term() -> None:
    """DLN prints k(0) x(0); with k(0) x(n) the sum at n is the n-th value, also where a part lies outside."""
    x, k = torch.arange(1.0, 8.0, dtype=torch.float64), torch.tensor([1.0, 5.0, -2.0], dtype=torch.float64)
    whole = cross_correlate(x, k, same(k))
    close(torch.stack([correlation_at(x, k, n) for n in range(7)]), whole)
    printed = k[0] * x[2] + k[1] * x[0] + k[2] * x[4]
    assert printed != whole[3]


@pytest.mark.system("convolution-and-cross-correlation")
@pytest.mark.system("convolution-and-cross-correlation", "plane-index")
def test_the_pixel_of_the_plane() -> None:
    """DLN prints x(H + k_h, W + k_w), one and the same pixel for all places; with x(h + k_h, w + k_w) it is scipy's."""
    x, k = normal(5, 6), normal(3, 3, seed=1)
    around = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1)]
    written = [[sum(k[1 + a, 1 + b] * x[h + a, w + b] for a, b in around) for w in range(1, 5)] for h in range(1, 4)]
    close(cross_correlate(x, k), torch.tensor(written, dtype=torch.float64))
    theirs = scipy.signal.correlate2d(x.numpy(), k.numpy(), "valid")
    close(torch.tensor(written, dtype=torch.float64), torch.from_numpy(theirs))


@pytest.mark.system("conv-as-structured-matrix")
@pytest.mark.system("conv-as-structured-matrix", "toeplitz", "distinct", "local")
def test_the_matrix_is_toeplitz_and_sparse() -> None:
    """S940-DLD.179, DLN-A.153: constant diagonals at stride 1; C_out C_in K² weights; zeros where nothing is seen."""
    w = normal(5)
    assert is_toeplitz(toeplitz(w, 9))
    assert is_toeplitz(toeplitz(w, 9, Slide(padding=2)))
    assert not is_toeplitz(toeplitz(w, 9, Slide(2)))
    w = normal(4, 2, 3, 3)
    m = matrix(w, (6, 5), Slide(padding=1)).view(4, 6, 5, 2, 6, 5)
    block = m[1, :, :, 0]  # one filter, one channel: doubly block Toeplitz
    assert all(is_toeplitz(block[row, :, other]) for row in range(6) for other in range(6))
    assert torch.equal(block[1:, :, 1:], block[:-1, :, :-1])
    assert distinct_entries(w, (6, 5), Slide(padding=1)) == 4 * 2 * 9
    assert distinct_entries(normal(4, 1, 3, 3), (6, 5), Slide(groups=2)) == 4 * 9
    seen = (m[0, 2, 2, 0] != 0).nonzero()
    assert seen.min().item() == 1
    assert seen.max().item() == 3


@pytest.mark.system("grouped-and-depthwise-convolution")
@pytest.mark.system("grouped-and-depthwise-convolution", "groups", "ends")
def test_groups_are_separate_convolutions() -> None:
    x, w = normal(2, 6, 5, 5), normal(9, 2, 3, 3, seed=1)
    parts = [layer(x[:, 2 * g : 2 * g + 2], w[3 * g : 3 * g + 3]) for g in range(3)]
    close(layer(x, w, None, Slide(groups=3)), torch.cat(parts, 1))
    close(layer(x, w := normal(9, 6, 3, 3), None, Slide(groups=1)), F.conv2d(x, w))
    deep = normal(6, 1, 3, 3)  # depthwise: channel c alone makes map c
    alone = layer(x, deep, None, Slide(groups=6))
    only = torch.zeros_like(x)
    only[:, 4] = x[:, 4]
    close(layer(only, deep, None, Slide(groups=6))[:, 4], alone[:, 4])
    with pytest.raises(ValueError, match="groups do not fit"):
        layer(x, w, None, Slide(groups=4))


@pytest.mark.system("conv2d-layer")
@pytest.mark.system("conv2d-layer", "layouts")
def test_layouts_of_the_books() -> None:
    """MF: (K_h, K_w, C_in, C_out). DLD: (C_in, C_out, K, K). Both mean the same layer as torch's."""
    x, w = normal(1, 2, 5, 5), normal(3, 2, 3, 4, seed=1)
    expected = F.conv2d(x, w)
    close(layer(x, from_kernel_first(w.permute(2, 3, 1, 0))), expected)
    close(layer(x, from_input_first(w.transpose(0, 1))), expected)
    # MF (22.6) at one place
    u = w.permute(2, 3, 1, 0)
    close((u[:, :, :, 2] * x[0, :, 1:4, 1:5].permute(1, 2, 0)).sum(), expected[0, 2, 1, 1])


def test_windows_are_a_view_and_refuse_what_does_not_fit() -> None:
    x = normal(2, 3, 6, 6)
    cut = windows(x, 3, 2)
    assert cut.shape == (2, 3, 4, 4, 3, 3)
    assert cut.data_ptr() == x.data_ptr()
    with pytest.raises(ValueError, match="reaches over 7 does not fit into 6"):
        windows(x, 4, 2, Slide(dilation=2))
    with pytest.raises(ValueError, match="one for each axis"):
        windows(x, (3, 3, 3), 2)
    with pytest.raises(ValueError, match="odd"):
        same(normal(4))
