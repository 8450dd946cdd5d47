"""How often a classifier is right, and what it takes for what.

    top-k error = 1 − (1/n) Σ_i [y_i is among the k largest of z_i]         k = 1: accuracy = 1 − error
    C[a, b] = number of examples of class a that were called b

Guessing among K classes has top-k error 1 − k/K.

Systems: top-k-error
"""

from __future__ import annotations

import torch
from torch import Tensor


def correct(logits: Tensor, y: Tensor) -> Tensor:
    """1 where the largest logit is the class's, else 0: (n) floats whose mean is the accuracy."""
    return (logits.argmax(dim=-1) == y).float()


def top_k(logits: Tensor, y: Tensor, k: int) -> Tensor:
    """1 where the class is among the k largest logits, else 0; 1 − mean is the top-k error."""
    return (logits.topk(k, dim=-1).indices == y[..., None]).any(dim=-1).float()


def confusion(predicted: Tensor, y: Tensor, classes: int) -> Tensor:
    """C (classes, classes): rows are the true classes, columns the predicted ones."""
    return torch.bincount(y * classes + predicted, minlength=classes**2).view(classes, classes)
