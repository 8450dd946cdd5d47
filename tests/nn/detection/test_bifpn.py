"""BiFPN: weights of the fusion, and a cell written out."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from descend.nn.detection.bifpn import BiFPN, FastFusion, FusedLevel, MixingCell, SoftmaxFusion
from tests.close import close


@pytest.mark.system("efficientdet")
@pytest.mark.system("efficientdet", "fusion")
def test_weights_are_shares() -> None:
    """Not negative, with a sum of about 1; a negative number counts as 0; softmax is the other form."""
    v = torch.tensor([0.5, -2.0, 1.5], dtype=torch.float64)
    maps = [torch.randn(2, 3, 4, 4, dtype=torch.float64) for _ in v]
    fast, soft = FastFusion(3).double(), SoftmaxFusion(3).double()
    with torch.no_grad():
        fast.v.copy_(v)
        soft.v.copy_(v)
    close(fast.weights(), torch.tensor([0.5, 0.0, 1.5], dtype=torch.float64) / 2.0001)
    assert (fast.weights() >= 0).all()
    assert abs(fast.weights().sum().item() - 1) < 1e-4
    close(fast(*maps), (0.5 * maps[0] + 1.5 * maps[2]) / 2.0001)
    e = v.exp()
    close(soft(*maps), sum(w * m for w, m in zip(e / e.sum(), maps, strict=True)))
    close(soft.weights().sum(), torch.tensor(1.0, dtype=torch.float64))


@pytest.mark.system("efficientdet", "fusion")
def test_trained_weights_stay_shares() -> None:
    """After steps that want one input alone, its weight is nearly all, and none is negative."""
    torch.manual_seed(0)
    fuse = FastFusion(3)
    maps = [torch.randn(2, 3, 4, 4) for _ in range(3)]
    rule = torch.optim.SGD(fuse.parameters(), 0.5)
    for _ in range(300):
        rule.zero_grad()
        (fuse(*maps) - maps[1]).square().mean().backward()
        rule.step()
    w = fuse.weights()
    assert (w >= 0).all()
    assert w[1] > 0.95
    assert abs(w.sum().item() - 1) < 1e-3


def run(level: FusedLevel, *maps: Tensor) -> Tensor:
    """A level written out, with its moments as they are at the start: 0 and 1."""
    x = F.silu(level.fuse(*maps))
    x = F.conv2d(x, level.depthwise.weight, padding=1, groups=x.shape[1])
    return torch.einsum("oi,bihw->bohw", level.pointwise.weight[..., 0, 0], x) / (1 + 1e-3) ** 0.5


@pytest.mark.system("efficientdet", "bifpn")
def test_a_cell_written_out() -> None:
    """Down, up, and the extra edge from a level's input to its output."""
    torch.manual_seed(0)
    cell = MixingCell((4, 4, 4, 4), 4).double().eval()
    with torch.no_grad():
        for p in cell.parameters():
            p.uniform_(0.2, 1)
        for layer in cell.modules():
            if isinstance(layer, torch.nn.BatchNorm2d):
                layer.weight.fill_(1)
                layer.bias.fill_(0)
    p = [torch.randn(2, 4, 16 >> i, 24 >> i, dtype=torch.float64) for i in range(4)]
    up = lambda x: x.repeat_interleave(2, 2).repeat_interleave(2, 3)
    down = lambda x: F.max_pool2d(x, 3, 2, 1)
    t2 = run(cell.down[2], p[2], up(p[3]))
    t1 = run(cell.down[1], p[1], up(t2))
    o0 = run(cell.down[0], p[0], up(t1))
    o1 = run(cell.up[0], p[1], t1, down(o0))
    o2 = run(cell.up[1], p[2], t2, down(o1))
    o3 = run(cell.top, p[3], down(o2))
    for ours, theirs in zip(cell(p), (o0, o1, o2, o3), strict=True):
        close(ours, theirs)


@pytest.mark.system("efficientdet", "bifpn")
def test_repeated_cells_and_every_level_sees_every_other() -> None:
    torch.manual_seed(0)
    neck = BiFPN((3, 5, 7), 8, 2).double()
    shapes = [(2, w, 16 >> i, 16 >> i) for i, w in enumerate((3, 5, 7))]
    maps = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    found = neck(maps)
    assert [tuple(m.shape[1:]) for m in found] == [(8, 16, 16), (8, 8, 8), (8, 4, 4), (8, 2, 2), (8, 1, 1)]
    for level in found[:-1]:
        grads = torch.autograd.grad(level.square().sum(), maps, retain_graph=True)
        assert all(g.abs().sum() > 0 for g in grads)
    assert len(neck.cells) == 2
    with pytest.raises(ValueError, match="at least 3 levels"):
        MixingCell((8, 8), 8)
