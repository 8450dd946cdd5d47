"""GELU by tanh is torch's, in every type; its compiled form is tested with the native code."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from descend.nn.gelu import GELUTanh
from tests.close import close


@pytest.mark.system("gelu")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_value_and_slope(dtype: torch.dtype) -> None:
    x = torch.linspace(-6, 6, 101, dtype=dtype).view(1, 101).requires_grad_()
    y, expected = GELUTanh()(x), F.gelu(x, approximate="tanh")
    close(y, expected)
    close(torch.autograd.grad(y.sum(), x)[0], torch.autograd.grad(expected.sum(), x)[0])


@pytest.mark.system("gelu")
def test_gradient_in_float64() -> None:
    assert torch.autograd.gradcheck(GELUTanh(), torch.linspace(-4, 4, 9, dtype=torch.float64, requires_grad=True))
