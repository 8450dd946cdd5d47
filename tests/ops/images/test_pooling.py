"""Pooling against torch, its gradient, the size erratum, and pooling over channels."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from descend.ops.images.convolution import layer
from descend.ops.images.pooling import average_pool, channel_max, channel_norm, global_average_pool, max_pool
from tests.close import close

SLUG = "pooling"


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.system("pooling", "modes")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize(
    ("window", "stride", "padding"), [(2, None, 0), (3, 2, 1), ((2, 3), (1, 2), (1, 0)), (4, 3, 2)]
)
def test_against_torch(window: int, stride: int | None, padding: int) -> None:
    x = normal(2, 3, 9, 8)
    close(max_pool(x, window, stride, padding), F.max_pool2d(x, window, stride, padding))
    close(average_pool(x, window, stride), F.avg_pool2d(x, window, stride))


@pytest.mark.system("pooling", "modes")
@pytest.mark.system(SLUG)
def test_other_numbers_of_axes() -> None:
    close(max_pool(normal(2, 3, 9), 3, 2), F.max_pool1d(normal(2, 3, 9), 3, 2))
    close(average_pool(normal(1, 2, 4, 6, 5), 2), F.avg_pool3d(normal(1, 2, 4, 6, 5), 2))


@pytest.mark.system("pooling", "sizes")
@pytest.mark.system(SLUG)
def test_sizes_of_the_books() -> None:
    """MF (22.14) prints 56 for 3×3, stride 2 on 112: it is 55, and 56 with padding 1. DLN: 8×64×64 -> 8×32×32."""
    x = torch.zeros(1, 1, 112, 112)
    assert max_pool(x, 3, 2).shape[-1] == 55
    assert max_pool(x, 3, 2, 1).shape[-1] == 56
    assert max_pool(torch.zeros(1, 8, 64, 64), 2).shape == (1, 8, 32, 32)
    assert max_pool(torch.zeros(1, 1, 8, 8), 2, 1).shape[-1] == 7  # without a stride the resolution stays


@pytest.mark.system("pooling", "backward")
@pytest.mark.system(SLUG)
def test_gradients() -> None:
    """Max: to the arg max alone. Average: the same to all. GAP: 1/(H W)."""
    x = normal(1, 2, 4, 4).requires_grad_()
    [g] = torch.autograd.grad(max_pool(x, 2).sum(), x)
    assert g.sum() == 8
    top = x.detach().unfold(2, 2, 2).unfold(3, 2, 2).flatten(-2).argmax(-1)
    assert torch.equal(g.unfold(2, 2, 2).unfold(3, 2, 2).flatten(-2).argmax(-1), top)
    for f in (lambda z: max_pool(z, 3, 2, 1), lambda z: average_pool(z, 2), global_average_pool):
        assert torch.autograd.gradcheck(f, (x,))
    [g] = torch.autograd.grad(global_average_pool(x).sum(), x)
    close(g, torch.full_like(x, 1 / 16))


@pytest.mark.system("pooling", "global")
@pytest.mark.system(SLUG)
def test_global_average_of_any_size() -> None:
    for size in ((7, 7), (3, 11)):
        x = normal(2, 5, *size)
        close(global_average_pool(x), x.mean((2, 3)))
        close(global_average_pool(x.roll((2, 3), (2, 3))), global_average_pool(x))


@pytest.mark.system("pooling", "phase")
@pytest.mark.system(SLUG)
def test_quadrature_pair_is_blind_to_phase() -> None:
    """S940-DLD.181: sine and cosine filters answer differently to a moved wave; the length of the pair does not."""
    place = torch.arange(8, dtype=torch.float64)
    w = torch.stack([(2 * torch.pi * place / 8).sin(), (2 * torch.pi * place / 8).cos()]).view(2, 1, 1, 8)
    phases = torch.linspace(0, 6, 9, dtype=torch.float64)
    waves = (2 * torch.pi * torch.arange(24, dtype=torch.float64) / 8 + phases[:, None]).sin().view(9, 1, 1, 24)
    answers = layer(waves, w)
    assert answers[:, 0].std() > 1
    close(channel_norm(answers, 2), torch.full((9, 1, 1, 17), 4.0, dtype=torch.float64))


@pytest.mark.system("pooling", "channels")
@pytest.mark.system(SLUG)
def test_channel_pooling() -> None:
    x = normal(2, 6, 3, 3)
    close(channel_max(x, 3)[:, 1], x[:, 3:].amax(1))
    close(channel_norm(x, 2)[:, 1], (x[:, 2] ** 2 + x[:, 3] ** 2).sqrt())
    assert torch.autograd.gradcheck(lambda z: channel_norm(z, 3), (x.requires_grad_(),))
    with pytest.raises(ValueError, match="groups of 4"):
        channel_max(x, 4)
