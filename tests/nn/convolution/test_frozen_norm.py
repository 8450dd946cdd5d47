"""Batch norm that is frozen: the numbers of batch norm in evaluation, always, and nothing to train."""

from __future__ import annotations

import torch
from torch import nn

from descend.nn.convolution.frozen_norm import FrozenBatchNorm, freeze_norms
from descend.nn.convolution.residual import BasicBlock
from tests.close import close


def test_it_is_batch_norm_in_evaluation() -> None:
    torch.manual_seed(0)
    block, x = BasicBlock(3, 5, 2), torch.randn(4, 3, 9, 9) * 3 + 1
    for _ in range(3):
        block(x)
    expected = block.eval()(x)
    freeze_norms(block)
    assert not any(isinstance(part, nn.BatchNorm2d) for part in block.modules())
    assert sum(isinstance(part, FrozenBatchNorm) for part in block.modules()) == 3
    close(block.train()(x), expected)
    before = {name: t.clone() for name, t in block.named_buffers()}
    block(x).sum().backward()
    assert all(torch.equal(t, before[name]) for name, t in block.named_buffers())
    assert all("norm" not in name for name, _ in block.named_parameters())


def test_its_equation() -> None:
    torch.manual_seed(1)
    norm, x = FrozenBatchNorm(4), torch.randn(2, 4, 3, 3)
    gamma, beta, mu, var = torch.rand(4, 4) + 0.5
    norm.load_state_dict({"weight": gamma, "bias": beta, "running_mean": mu, "running_var": var})
    at = (None, slice(None), None, None)
    close(norm(x), gamma[at] * (x - mu[at]) / (var[at] + 1e-5).sqrt() + beta[at])
