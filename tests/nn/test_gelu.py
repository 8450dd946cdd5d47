"""The training form of the tanh GELU is torch's, in value and derivative."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from descend.nn.gelu import GELUTanh
from tests.close import close


def test_equals_torch_forward_and_backward() -> None:
    x = torch.cat([torch.linspace(-12, 12, 501), torch.tensor([0.0, -1e4, 1e4])]).double()
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    weights = torch.linspace(0.5, 1.5, len(x)).double()
    (GELUTanh()(ours) * weights).sum().backward()
    (F.gelu(theirs, approximate="tanh") * weights).sum().backward()
    close(GELUTanh()(ours), F.gelu(theirs, approximate="tanh"))
    close(GELUTanh()(x), F.gelu(x, approximate="tanh"))  # without gradients
    close(ours.grad, theirs.grad)


def test_gradcheck() -> None:
    x = torch.linspace(-3, 3, 12, dtype=torch.float64).view(3, 4).requires_grad_()
    assert torch.autograd.gradcheck(GELUTanh(), (x,))


def test_keeps_no_more_than_the_input() -> None:
    x = torch.randn(8, 16, requires_grad=True)
    kept: list[torch.Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        GELUTanh()(x)
    assert [t.shape for t in kept] == [x.shape]
