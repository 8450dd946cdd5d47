"""RepConv: one convolution gives what its branches give; the branches are torch's."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from descend.nn.convolution.folding import fold
from descend.nn.convolution.repconv import RepConv, RepConvWithIdentity
from tests.close import close

FORMS: dict[str, Callable[[], RepConv]] = {
    "plain": lambda: RepConv(6, 9),
    "stride": lambda: RepConv(6, 9, 2, nn.ReLU()),
    "identity": lambda: RepConvWithIdentity(6),
}


def train_moments(module: nn.Module) -> None:
    """Scales, shifts and running moments of a trained net."""
    random = torch.Generator().manual_seed(5)
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            for t in (part.weight, part.bias, part.running_mean, part.running_var):
                assert t is not None
                t.data.copy_(torch.rand(t.shape, generator=random) + 0.3)


@pytest.mark.system("rt-detr-hybrid-encoder", "repconv")
@pytest.mark.parametrize("form", FORMS)
def test_merged_is_unmerged(form: str) -> None:
    torch.manual_seed(0)
    block = FORMS[form]()
    train_moments(block)
    x, before = torch.randn(2, 6, 11, 8), block.eval()
    merged = block.merge()
    close(merged(x), before(x))
    assert sum(isinstance(part, nn.Conv2d) for part in merged.modules()) == 1
    assert not any(isinstance(part, nn.BatchNorm2d) for part in merged.modules())
    folded = fold(nn.Sequential(block, nn.Identity()))
    close(folded(x), before(x))
    assert sum(p.numel() for p in folded.parameters()) < sum(p.numel() for p in block.parameters())


@pytest.mark.system("rt-detr-hybrid-encoder", "repconv")
def test_the_branches() -> None:
    """In training, too: 3×3, 1×1 and identity, each with a batch norm of its own."""
    torch.manual_seed(1)
    block, x = RepConvWithIdentity(4, nn.ReLU()).train(), torch.randn(3, 4, 7, 7)
    f = nn.functional
    parts = [f.conv2d(x, block.wide.conv.weight, padding=1), f.conv2d(x, block.point.conv.weight), x]
    expected = sum(f.batch_norm(part, None, None, training=True) for part in parts)
    assert isinstance(expected, torch.Tensor)
    close(block(x), expected.relu())
