"""Up and down: unpooling both ways, interpolation, and the transposed convolution as adjoint."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from descend.ops.images.convolution import Slide, layer, matrix
from descend.ops.images.pooling import average_pool, max_pool
from descend.ops.images.resampling import (
    average_unpool,
    averaged_transposed_convolution,
    bilinear,
    bilinear_kernel,
    max_pool_with_switches,
    max_unpool,
    max_unpool_first,
    overlaps,
    pixel_shuffle,
    subsample,
    transposed_convolution,
    transposed_size,
)
from tests.close import close

UP, TRANSPOSED = "resampling-and-unpooling", "transposed-convolution"


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.system("resampling-and-unpooling", "average", "max-first", "down")
@pytest.mark.system(UP)
@pytest.mark.parametrize("factor", [2, 3])
def test_pooling_undoes_unpooling(factor: int) -> None:
    x = normal(2, 3, 4, 5)
    close(average_pool(average_unpool(x, factor), factor), x)
    close(average_unpool(x, factor), F.interpolate(x, scale_factor=factor, mode="nearest"))
    close(max_pool(max_unpool_first(x.abs(), factor), factor), x.abs())
    close(max_pool(max_unpool_first(x, factor), factor), x.clamp_min(0))  # the erratum: 0 wins over a negative value
    assert torch.equal(subsample(max_unpool_first(x, factor), factor), x)


@pytest.mark.system("resampling-and-unpooling", "max-remembered")
@pytest.mark.system(UP)
def test_remembered_cells() -> None:
    """The maxima return to where they stood; torch's max_unpool2d is the oracle."""
    x = normal(2, 3, 6, 8).abs()
    values, cells = max_pool_with_switches(x, 2)
    back = max_unpool(values, cells, 2)
    theirs = F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)
    close(back, theirs)
    assert torch.equal(back[back > 0], x[back > 0])
    close(max_pool(back, 2), values)
    x = values.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda z: max_unpool(z, cells, 2), (x,))
    with pytest.raises(ValueError, match="has the cells 0"):
        max_unpool(values, cells + 4, 2)


@pytest.mark.system("resampling-and-unpooling", "bilinear")
@pytest.mark.system(UP)
@pytest.mark.parametrize("factor", [2, 3, 4])
def test_interpolation_and_shuffling_against_torch(factor: int) -> None:
    x = normal(2, 3, 4, 5)
    close(bilinear(x, factor), F.interpolate(x, scale_factor=factor, mode="bilinear", align_corners=False))
    x = normal(2, 3 * factor**2, 4, 5)
    close(pixel_shuffle(x, factor), F.pixel_shuffle(x, factor))


@pytest.mark.system("resampling-and-unpooling", "bilinear")
@pytest.mark.system(UP)
@pytest.mark.system(TRANSPOSED)
@pytest.mark.parametrize("factor", [2, 4])
def test_bilinear_kernel_interpolates(factor: int) -> None:
    """A transposed convolution that starts with this kernel is bilinear up-sampling, away from the border."""
    x = normal(1, 1, 6, 6)
    up = transposed_convolution(x, bilinear_kernel(factor, torch.float64)[None, None], None, Slide(factor, factor // 2))
    inside = slice(factor, -factor)
    close(up[..., inside, inside], bilinear(x, factor)[..., inside, inside])


@pytest.mark.system("transposed-convolution", "adjoint", "torch")
@pytest.mark.system(TRANSPOSED)
@pytest.mark.parametrize("slide", [Slide(), Slide(2), Slide(2, 1), Slide((3, 1), (0, 1), (1, 2)), Slide(2, 0, 1, 2)])
def test_adjoint_matrix_and_torch(slide: Slide) -> None:
    """⟨conv(x), y⟩ = ⟨x, convT(y)⟩: the matrix is the transpose of the convolution's."""
    w, b = normal(4, 6 // slide.groups, 3, 3), normal(6, seed=2)
    y = normal(2, 4, 3, 4, seed=1)
    up = transposed_convolution(y, w, None, slide)
    assert tuple(up.shape[2:]) == transposed_size((3, 4), 3, slide)
    x = normal(*up.shape, seed=3)
    close((layer(x, w, None, slide) * y).sum(), (x * up).sum())
    close(up.flatten(1), (matrix(w, up.shape[2:], slide).T @ y.flatten(1).T).T)
    padding, dilation = slide.padding, slide.dilation
    close(
        transposed_convolution(y, w, b, slide),
        F.conv_transpose2d(y, w, b, slide.stride, padding, 0, slide.groups, dilation),
    )


@pytest.mark.system("transposed-convolution", "overlaps")
@pytest.mark.system(TRANSPOSED)
def test_overlaps_summed_and_averaged() -> None:
    """3×3 patches written at stride 2 overlap in one row and column: sums show a chequerboard, means do not."""
    x, w = torch.ones(1, 1, 3, 3, dtype=torch.float64), torch.ones(1, 1, 3, 3, dtype=torch.float64)
    total = transposed_convolution(x, w, None, Slide(2))
    line = torch.tensor([1, 1, 2, 1, 2, 1, 1], dtype=torch.float64)
    assert torch.equal(total[0, 0], line[:, None] * line)
    assert torch.equal(overlaps((3, 3), 3, Slide(2), torch.float64), total[0, 0])
    assert torch.equal(averaged_transposed_convolution(x, w, None, Slide(2)), torch.ones_like(total))
    x = normal(2, 3, 3, 4).requires_grad_()
    w = normal(3, 2, 3, 3, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, w: averaged_transposed_convolution(x, w, None, Slide(2)), (x, w))


@pytest.mark.system("transposed-convolution", "not-inverse")
@pytest.mark.system(TRANSPOSED)
def test_it_is_not_the_inverse() -> None:
    x, w = normal(1, 1, 7, 7), normal(1, 1, 3, 3, seed=1)
    back = transposed_convolution(layer(x, w, None, Slide(2)), w, None, Slide(2))
    assert back.shape == x.shape
    assert (back - x).norm() > 0.5 * x.norm()
