"""Every model file computes with bfloat16 products as in float32, by being there: values and gradients."""

from __future__ import annotations

from importlib import import_module

import pytest
import torch
from torch import Tensor

from descend.models import model_class, names
from tests.contracts.test_models import outputs, tiny_input


def compute(name: str, half: bool) -> tuple[Tensor, Tensor]:
    """All outputs, and all gradients of a fixed sum of them, laid end to end."""
    torch.manual_seed(0)
    model = model_class(name)(import_module(f"descend.models.{name}").TINY).eval()  # no noise, no batch statistics
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        found = torch.cat([y.float().flatten() for y in outputs(model(*tiny_input(name)))])
    (found * torch.linspace(-1, 1, len(found))).sum().backward()
    slopes = [p.grad for p in model.parameters() if p.grad is not None]
    assert all(slope.dtype == torch.float32 for slope in slopes)
    return found.detach(), torch.cat([slope.flatten() for slope in slopes])


@pytest.mark.parametrize("name", names())
def test_values_and_gradients_are_those_of_float32(name: str) -> None:
    """A factor is rounded to one part in 256, and a rectifier near 0 may switch: a few percent over many layers."""
    (exact, slope), (rounded, rounded_slope) = compute(name, half=False), compute(name, half=True)
    assert (rounded - exact).norm() < 0.2 * exact.norm()
    assert torch.cosine_similarity(slope, rounded_slope, dim=0) > 0.8
