"""Buffers that are not saved have their values again after loading."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from descend.ranges import Width
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class MaskedConfig:
    width: Width = 4


class Masked(Pretrained):
    """y = (W ∘ mask) x, the mask computed and not saved."""

    Config = MaskedConfig
    mask: Tensor

    def __init__(self, config: MaskedConfig):
        super().__init__()
        self.config = config
        self.weight = nn.Parameter(torch.randn(config.width, config.width))
        self.register_buffer("mask", torch.ones(config.width, config.width).tril(-1), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return x @ (self.weight * self.mask).T


def test_a_mask_that_is_not_saved_is_made_again(tmp_path: Path) -> None:
    model = Masked(MaskedConfig())
    assert set(model.state_dict()) == {"weight"}
    model.save_pretrained(tmp_path)
    before = torch.get_rng_state()
    again = Masked.from_pretrained(tmp_path)
    assert torch.equal(again.mask, model.mask)
    assert torch.equal(again.weight, model.weight)
    assert torch.equal(torch.get_rng_state(), before)
