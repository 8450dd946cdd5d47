"""Closed forms of adapters against modules that are built."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from descend.models import make_model
from descend.models.llama import LlamaConfig
from descend.nn.adapters.lora import LowRankUpdates
from descend.theory.adapters import lora_parameters, lora_reduction, lora_share


@pytest.mark.system("lora", "parameter-counts")
def test_the_numbers_of_lora_are_those_of_the_modules() -> None:
    with torch.device("meta"):
        base = make_model(LlamaConfig(vocab=64, width=256, depth=3, heads=4, kv_heads=2, hidden=512))
        adapter = LowRankUpdates.make(base, ["attn.q", "attn.v"], rank=4)
    shapes = [tuple(m.weight.shape) for name, m in base.named_modules() if name.endswith(("attn.q", "attn.v"))]
    assert len(shapes) == 6
    assert all(isinstance(m, nn.Module) for m in base.modules())
    assert adapter.count() == lora_parameters(shapes, 4)


@pytest.mark.system("lora", "parameter-counts")
def test_the_printed_reduction_is_a_division_of_rounded_numbers() -> None:
    assert lora_reduction(4096, 4096, 16) == 128.0
    assert int(16.7e6 / 131e3) == 127  # what VOM prints
    assert 0.001 < lora_share(4096, 16, [(4096, 4096)] * 2) < 0.01
