"""Residual blocks: identities and Jacobians, shortcuts, placements, gradients, and plain torch as the oracle."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from descend.nn.convolution.residual import (
    BasicBlock,
    BottleneckBlock,
    ConvNorm,
    NormAfterSum,
    PlainBlock,
    Preactivation,
    PreactivationBottleneck,
    ReluBeforeSum,
    ReluOnlyPreactivation,
    Residual,
    ZeroPad,
    projection,
    stages,
    zero_pad,
)
from descend.theory.residual_paths import bottleneck_weights, two_convolutions_weights
from tests.close import close

PLACEMENTS = (BasicBlock, NormAfterSum, ReluBeforeSum, ReluOnlyPreactivation, Preactivation, PreactivationBottleneck)
BARE = (ReluBeforeSum, ReluOnlyPreactivation, Preactivation, PreactivationBottleneck)


def images(c: int = 4, side: int = 5, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(3, c, side, side, dtype=dtype, generator=torch.Generator().manual_seed(0))


def moved(module: Any, seed: int = 1) -> Any:
    """No parameter or running moment is left at 0 or 1."""
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, t in module.state_dict().items():
            if t.is_floating_point():
                noise = torch.randn(t.shape, generator=random, dtype=t.dtype)
                t.add_(noise.abs() if name.endswith("running_var") else 0.3 * noise)
    return module


def silenced(block: Any) -> Any:
    """The block with F = 0: the weights of its last convolution are 0."""
    last = block.conv_3 if hasattr(block, "conv_3") else block.conv_2
    nn.init.zeros_((last if isinstance(last, nn.Conv2d) else last.conv).weight)
    return block


def normed(x: Tensor, norm: nn.BatchNorm2d) -> Tensor:
    """Batch norm by hand, from the batch's own moments."""
    mu, var = x.mean((0, 2, 3), keepdim=True), x.var((0, 2, 3), unbiased=False, keepdim=True)
    return (x - mu) / (var + norm.eps).sqrt() * norm.weight[:, None, None] + norm.bias[:, None, None]


def conv(x: Tensor, weight: Tensor, stride: int = 1) -> Tensor:
    return F.conv2d(x, weight, stride=stride, padding=weight.shape[-1] // 2)


@pytest.mark.system("residual-block")
@pytest.mark.system("residual-block", "bare-sum", "jacobian")
def test_a_wrapper_around_any_layer() -> None:
    """F = 0 is the identity, the Jacobian is I + ∂F/∂x, and the gradient goes to both branches."""
    f, x = nn.Sequential(nn.Linear(3, 3), nn.Tanh()).double(), torch.tensor([0.3, -0.2, 0.9], dtype=torch.float64)
    j, inner = (torch.autograd.functional.jacobian(g, x) for g in (Residual(f), f))
    close(j, torch.eye(3, dtype=torch.float64) + inner)
    for p in f.parameters():
        nn.init.zeros_(p)
    assert torch.equal(Residual(f)(x), x)
    assert torch.equal(torch.autograd.functional.jacobian(Residual(f), x), torch.eye(3, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"makes \(2,\) of \(3,\)"):
        Residual(nn.Linear(3, 2))(torch.zeros(3))


@pytest.mark.system("preactivation-block", "placements")
@pytest.mark.system("residual-block")
@pytest.mark.system("residual-block", "shortcuts", "relu-after-sum")
@pytest.mark.parametrize("shortcut", [projection, zero_pad])
@pytest.mark.parametrize(("outputs", "stride"), [(4, 1), (6, 2), (4, 2), (6, 1)])
def test_the_basic_block_is_the_equation(shortcut: Any, outputs: int, stride: int) -> None:
    """MF 22.2.1: ReLU(F(x) + S(x)), written out with torch's functions."""
    x, block = images(), moved(BasicBlock(4, outputs, stride, shortcut).double())
    a, b = block.conv_1, block.conv_2
    f = normed(conv(F.relu(normed(conv(x, a.conv.weight, stride), a.norm)), b.conv.weight), b.norm)
    if outputs == 4 and stride == 1:
        s = x
    elif shortcut is projection:
        s = normed(conv(x, block.shortcut.conv.weight, stride), block.shortcut.norm)
    else:
        s = torch.zeros_like(f)
        s[:, :4] = x[:, :, ::stride, ::stride]
    close(block(x), F.relu(f + s))


@pytest.mark.system("residual-block")
@pytest.mark.system("residual-block", "relu-after-sum", "skip-gradient")
def test_a_silent_block() -> None:
    """F = 0: ReLU(x), and the gradient reaches x through the skip although F's weights are 0."""
    x = images().requires_grad_()
    y = silenced(BasicBlock(4, 4).double())(x)
    assert torch.equal(y, F.relu(x))
    y.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, (x > 0).double())


@pytest.mark.system("residual-block")
@pytest.mark.system("residual-block", "shortcuts")
def test_shortcuts_and_their_parameters() -> None:
    """The identity and zeros have none; 64 -> 128 by projection has 8192 weights (and a norm)."""
    assert not list(projection(64, 64, 1).parameters())
    assert not list(zero_pad(64, 128, 2).parameters())
    assert next(projection(64, 128, 2).parameters()).numel() == 8192
    with pytest.raises(ValueError, match="zeros cannot make 2 channels of 3"):
        ZeroPad(3, 2)


@pytest.mark.system("bottleneck-block")
@pytest.mark.system("bottleneck-block", "equation")
@pytest.mark.parametrize("strides", [(1, 1), (1, 2), (2, 1)])
def test_the_bottleneck_is_the_equation(strides: tuple[int, int]) -> None:
    x, block = images(), moved(BottleneckBlock(4, 8, strides).double())
    f = x
    for part, stride in zip((block.conv_1, block.conv_2, block.conv_3), (*strides, 1), strict=True):
        f = normed(conv(f if part is block.conv_1 else F.relu(f), part.conv.weight, stride), part.norm)
    s = normed(conv(x, block.shortcut.conv.weight, max(strides)), block.shortcut.norm)
    close(block(x), F.relu(f + s))


@pytest.mark.system("bottleneck-block")
@pytest.mark.system("bottleneck-block", "saving")
def test_weights_of_a_bottleneck() -> None:
    """17/16 C² against 18 C²."""
    for channels in (64, 256):
        block = BottleneckBlock(channels, channels)
        found = sum(p.numel() for p in block.parameters() if p.dim() == 4)
        assert found == bottleneck_weights(channels) == 17 * channels**2 // 16
        full = sum(p.numel() for p in BasicBlock(channels, channels).parameters() if p.dim() == 4)
        assert full == two_convolutions_weights(channels) == 18 * channels**2
    for kind in (BottleneckBlock, PreactivationBottleneck):
        with pytest.raises(ValueError, match="multiple of 4"):
            kind(4, 6)


@pytest.mark.system("preactivation-block")
@pytest.mark.system("preactivation-block", "placements")
def test_each_placement_is_its_equation() -> None:
    """The five of the paper, written out: which of norm, ReLU and sum comes when."""
    x = images()

    def halves(block: Any) -> tuple[Any, Any]:
        return block.conv_1, block.conv_2

    block = moved(NormAfterSum(4, 4).double())
    f = conv(F.relu(normed(conv(x, block.conv_1.conv.weight), block.conv_1.norm)), block.conv_2.weight)
    close(block(x), F.relu(normed(f + x, block.norm)))

    block = moved(ReluBeforeSum(4, 4).double())
    a, b = halves(block)
    inner = F.relu(normed(conv(x, a.conv.weight), a.norm))
    close(block(x), F.relu(normed(conv(inner, b.conv.weight), b.norm)) + x)
    assert (block.branch(x) >= 0).all()

    block = moved(ReluOnlyPreactivation(4, 4).double())
    a, b = halves(block)
    inner = F.relu(normed(conv(F.relu(x), a.conv.weight), a.norm))
    close(block(x), normed(conv(inner, b.conv.weight), b.norm) + x)

    block = moved(Preactivation(4, 4).double())
    a, b = halves(block)
    inner = conv(F.relu(normed(x, a.norm)), a.conv.weight)
    close(block(x), conv(F.relu(normed(inner, b.norm)), b.conv.weight) + x)


@pytest.mark.system("preactivation-block")
@pytest.mark.system("preactivation-block", "pure-identity")
@pytest.mark.parametrize("kind", PLACEMENTS)
def test_the_path_of_a_silent_block(kind: Any) -> None:
    """With F = 0 the shortcut of a block that ends in a bare sum is a pure identity; the other two are not."""
    x = images()
    stack = nn.Sequential(*(silenced(kind(4, 4).double()) for _ in range(3)))
    assert torch.equal(stack(x), x) == (kind in BARE)


@pytest.mark.system("preactivation-block")
@pytest.mark.system("residual-block")
@pytest.mark.system("bottleneck-block")
@pytest.mark.system("bottleneck-block", "gradients")
@pytest.mark.parametrize("kind", [*PLACEMENTS, BottleneckBlock, PlainBlock])
def test_gradients(kind: Any) -> None:
    block = moved(kind(4, 4).double())
    x = images(side=3)[:2].requires_grad_()
    assert torch.autograd.gradcheck(block, x, atol=1e-5)
    assert all(p.requires_grad for p in block.parameters())


@pytest.mark.system("residual-block")
def test_a_plain_block_is_the_basic_block_without_its_shortcut() -> None:
    plain, basic = PlainBlock(4, 4), BasicBlock(4, 4)
    plain.load_state_dict(basic.state_dict())
    x = images(dtype=torch.float32)
    close(plain(x), F.relu(basic.branch(x)))


@settings(max_examples=15, derandomize=True, deadline=None)
@given(
    st.integers(1, 3),
    st.integers(1, 4),
    st.integers(2, 9),
    st.integers(2, 9),
    st.integers(1, 3),
    st.sampled_from([1, 3]),
)
def test_shapes_of_every_shortcut_agree(c: int, more: int, h: int, w: int, stride: int, kernel: int) -> None:
    """Whatever the size, the branch and both shortcuts give maps of one shape."""
    x, outputs = torch.randn(2, c, h, w), c + more
    found = [f(x).shape for f in (ConvNorm(c, outputs, kernel, stride), projection(c, outputs, stride))]
    assert found[0] == found[1] == zero_pad(c, outputs, stride)(x).shape


def test_stages() -> None:
    found = stages(PlainBlock, (3, 4, 6), (2, 1), (1, 2))
    assert [len(list(stage.children())) for stage in found] == [2, 1]
    x = images(3, 8, torch.float32)
    assert found[1](found[0](x)).shape == (3, 6, 4, 4)
    with pytest.raises(ValueError, match="give one each"):
        stages(PlainBlock, (3, 4), (2, 1), (1, 2))
