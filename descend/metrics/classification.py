"""How often a classifier is right, and what it takes for what.

    top-k error = 1 − (1/n) Σ_i [y_i is among the k largest of z_i]         k = 1: accuracy = 1 − error
    C[a, b] = number of examples of class a that were called b
    precision_k = C[k, k] / Σ_a C[a, k]       of what is called k, the share that is k
    recall_k    = C[k, k] / Σ_b C[k, b]       of what is k, the share that is called k
    F1_k        = 2 / (1/precision_k + 1/recall_k) = 2 C[k, k] / (Σ_a C[a, k] + Σ_b C[k, b])
    ECE         = Σ_m (n_m/n) |accuracy_m − confidence_m|        over bins m of the largest probability

Guessing among K classes has top-k error 1 − k/K.

Systems: top-k-error, calibration-ece
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


def precision_recall_f1(counts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Precision, recall and F1 of each class (classes), from the confusion matrix; 0/0 counts as 0."""
    hits, called, there = counts.diagonal().double(), counts.sum(dim=0), counts.sum(dim=1)
    return hits / called.clamp(min=1), hits / there.clamp(min=1), 2 * hits / (called + there).clamp(min=1)


def macro_f1(counts: Tensor) -> float:
    """The mean of F1 over the classes that occur or are predicted: a rare class weighs as much as a frequent one."""
    seen = (counts.sum(dim=0) + counts.sum(dim=1)) > 0
    return precision_recall_f1(counts)[2][seen].mean().item()


def find_macro_f1(predicted: Tensor, y: Tensor) -> float:
    """The same from the classes themselves, however many there are: predicted (n), y (n)."""
    classes = 1 + int(torch.cat([predicted, y]).max()) if len(y) else 1
    called, there = (torch.bincount(k, minlength=classes) for k in (predicted, y))
    hits, seen = torch.bincount(y[predicted == y], minlength=classes).double(), (called + there) > 0
    return (2 * hits[seen] / (called + there)[seen]).mean().item()


def reliability(p: Tensor, y: Tensor, bins: int = 10) -> tuple[Tensor, Tensor, Tensor]:
    """Of each bin of the largest probability: number of examples, mean confidence, accuracy (bins)."""
    sure, called = p.double().max(dim=-1)
    return bin_confidence(sure, called == y, bins)


def bin_confidence(sure: Tensor, right: Tensor, bins: int = 10) -> tuple[Tensor, Tensor, Tensor]:
    """The same of how sure each answer was (n), and whether it was right (n)."""
    place = (sure * bins).long().clamp(max=bins - 1)
    count = torch.bincount(place, minlength=bins)
    confidence = torch.bincount(place, weights=sure.double(), minlength=bins) / count.clamp(min=1)
    accuracy = torch.bincount(place, weights=right.double(), minlength=bins) / count.clamp(min=1)
    return count, confidence, accuracy


def expected_calibration_error(p: Tensor, y: Tensor, bins: int = 10) -> float:
    """ECE: how far confidence is from accuracy, on average; 0 for a model that is right as often as it says."""
    return mean_gap(*reliability(p, y, bins))


def mean_gap(count: Tensor, confidence: Tensor, accuracy: Tensor) -> float:
    """ECE of the bins."""
    return (count * (accuracy - confidence).abs()).sum().item() / max(int(count.sum()), 1)
