"""CSP blocks: the split, its gradient and its cost; ELAN and pooling by their equations."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from descend.nn.detection.blocks import BLOCKS, MIXERS
from descend.nn.detection.csp import (
    CspBlock,
    CspChain,
    CspEntryBlock,
    DarknetResidual,
    ElanBlock,
    GroupedElanBlock,
    PairUnit,
    PyramidPool,
    leaky_unit,
    mish_unit,
    shuffle_channels,
    silu_unit,
)
from tests.close import close

CSP, X = "csp-block-and-darknet", "yolox-v7-v9"


def count(module: nn.Module, *shape: int) -> int:
    """Multiplications of the convolutions, measured."""
    with FlopCounterMode(display=False) as counter, torch.device("meta"):
        module.to("meta")(torch.empty(*shape))
    return counter.get_total_flops() // 2


@pytest.mark.system(CSP)
@pytest.mark.system(CSP, "split")
def test_the_gradient_goes_round_the_inner_layers() -> None:
    """∂L/∂x₁ is the same for F and 50 F: the transition's part alone. F sees the second half only."""
    torch.manual_seed(0)
    inner, transition = nn.Conv2d(2, 2, 3, padding=1), nn.Conv2d(4, 4, 1)
    block = CspBlock(inner, transition).double()
    x = torch.randn(1, 4, 5, 5, dtype=torch.float64, requires_grad=True)
    first = torch.autograd.grad(block(x).sum(), x)[0]
    with torch.no_grad():
        inner.weight *= 50
    second = torch.autograd.grad(block(x).sum(), x)[0]
    assert torch.equal(first[:, :2], second[:, :2])
    assert not torch.allclose(first[:, 2:], second[:, 2:])
    close(first[0, :2, 0, 0], transition.weight.sum(dim=0)[:2, 0, 0])
    close(block(x), transition(torch.cat([x[:, :2], inner(x[:, 2:])], dim=1)))


@pytest.mark.system(CSP)
@pytest.mark.system(CSP, "operations")
def test_measured_operations() -> None:
    """Eight residual units of C channels against F on half of them: 50% less; 47.5% with the transition, 45% with the
    two entries, too; three quarters for plain C → C convolutions."""
    c, n, size = 16, 8, 10
    unit = c * c * size * size
    plain = nn.Sequential(*(DarknetResidual(c, c // 2) for _ in range(n)))
    half = nn.Sequential(*(DarknetResidual(c // 2, c // 2) for _ in range(n)))
    split = CspBlock(half, leaky_unit(c, c))
    entered = CspEntryBlock(c, c, c // 2, half, leaky_unit)
    whole, inside = count(plain, 1, c, size, size), count(half, 1, c // 2, size, size)
    assert whole == 40 * unit
    assert inside == 20 * unit
    close(1 - count(split, 1, c, size, size) / whole, 0.475)
    close(1 - count(entered, 1, c, size, size) / whole, 0.45)
    dense, split_dense = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c // 2, c // 2, 3, padding=1)
    close(1 - count(split_dense, 1, c // 2, size, size) / count(dense, 1, c, size, size), 0.75)


@pytest.mark.system(CSP)
def test_units_and_blocks_by_their_equations() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 6, 7, 7)
    for unit, act in ((silu_unit, nn.SiLU()), (leaky_unit, nn.LeakyReLU(0.1)), (mish_unit, nn.Mish())):
        layer = unit(6, 4, 3).eval()
        close(layer(x), act(layer.norm(layer.conv(x))))
    block = CspEntryBlock(6, 8, 4, PairUnit(4)).eval()
    both = torch.cat([block.inner(block.changed(x)), block.kept(x)], dim=1)
    close(block(x), block.transition(both))
    chain = CspChain(6, 8, nn.ModuleList(PairUnit(4) for _ in range(2))).eval()
    a, b = chain.entry(x).chunk(2, dim=1)
    c = chain.steps[0](b)
    close(chain(x), chain.transition(torch.cat([a, b, c, chain.steps[1](c)], dim=1)))
    residual = DarknetResidual(6, 3).eval()
    close(residual(x), x + residual.expand(residual.reduce(x)))


@pytest.mark.system(X)
@pytest.mark.system(X, "e-elan")
@pytest.mark.parametrize(("hidden", "depth"), [(4, 1), (6, 3)])
def test_elan_by_its_configuration(hidden: int, depth: int) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 6, 5, 5)
    block = ElanBlock(6, 8, hidden, depth).eval()
    steps: list[Tensor] = [block.side(x), block.entry(x)]
    for step in block.steps:
        steps.append(step(steps[-1]))
    close(block(x), block.transition(torch.cat(steps, dim=1)))
    weights = 2 * 6 * hidden + depth * 2 * 9 * hidden**2 + (2 + depth) * hidden * 8
    norms = 2 * (2 * hidden + 2 * depth * hidden + 8)
    assert sum(p.numel() for p in block.parameters()) == weights + norms
    grouped = GroupedElanBlock(6, 8, hidden, depth, groups=2).eval()
    assert sum(p.numel() for p in grouped.parameters()) == 2 * (weights + norms)
    a, b = (one(x) for one in grouped.blocks)
    mixed = torch.stack([a, b], dim=2).flatten(1, 2)  # a₀, b₀, a₁, b₁, ..
    close(grouped(x), mixed[:, :8] + mixed[:, 8:])


@pytest.mark.system(X, "e-elan")
def test_the_shuffle() -> None:
    x = torch.arange(6.0).view(1, 6, 1, 1)
    assert shuffle_channels(x, 2).flatten().tolist() == [0, 3, 1, 4, 2, 5]
    assert torch.equal(shuffle_channels(shuffle_channels(x, 2), 3), x)
    with pytest.raises(ValueError, match="shuffled"):
        GroupedElanBlock(4, 7, 2, groups=2)


def test_pools_in_a_row() -> None:
    """Three maxima of 5 see 5, 9 and 13 pixels."""
    torch.manual_seed(0)
    pool = PyramidPool(4, 6).eval()
    x = torch.randn(1, 4, 20, 20)
    y = pool.entry(x)
    each = [y, *(nn.functional.max_pool2d(y, k, 1, k // 2) for k in (5, 9, 13))]
    close(pool(x), pool.transition(torch.cat(each, dim=1)))


@pytest.mark.system(X, "configurable")
@pytest.mark.parametrize("name", BLOCKS)
def test_every_block_fits_every_place(name: str) -> None:
    for table in (BLOCKS, MIXERS):
        assert table[name](8, 12, 2)(torch.randn(2, 8, 4, 4)).shape == (2, 12, 4, 4)
