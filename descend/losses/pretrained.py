"""The penalty toward pretrained weights: fine-tuning that stays near where it began.

    L + λ ‖θ − θ_pre‖²          gradient of the second part: 2 λ (θ − θ_pre)

The squared Euclidean norm over all weights, without the ½ that weight decay often has (VOM 13.6.4); λ is not given.
λ = 0 is plain fine-tuning, λ → ∞ keeps θ_pre. With ½ Σ h (θ − θ*)² as the loss of the new task, the minimum is

    θ = (h θ* + 2 λ θ_pre) / (h + 2 λ)

Systems: pretrained-weight-penalty
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn


class PretrainedPenalty(nn.Module):
    """λ ‖θ − θ_pre‖² of a model, with a frozen copy of the weights that it had when this was made."""

    def __init__(self, model: nn.Module, weight: float):
        super().__init__()
        self.pretrained, self.weight = copy.deepcopy(model).eval().requires_grad_(False), weight

    def forward(self, model: nn.Module) -> Tensor:
        return self.weight * distance_to_pretrained(model, self.pretrained)


def distance_to_pretrained(model: nn.Module, pretrained: nn.Module) -> Tensor:
    """‖θ − θ_pre‖² over all weights; tied ones count once."""
    before = dict(pretrained.named_parameters())
    return torch.stack([(p - before[name]).square().sum() for name, p in model.named_parameters()]).sum()
