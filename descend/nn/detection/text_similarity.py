"""A class head without classes: a region is as much of a class as it resembles the class's text.

    e = W x / ‖W x‖,  t_q = T(text q) / ‖·‖            a region's vector and the text's, of length 1
    z_q = (e · t_q + shift) · scale                     the score is σ(z_q), each text for itself

New names at inference are new vectors t_q: nothing is trained again. OWL reads shift and scale off the region,
shift = w_s · x + b_s and scale = ELU(w_c · x + b_c) + 1 > 0; YOLO-World's contrastive head has one shift and one scale
e^s for all regions of a level. Similarity alone, within −1 .. 1, could never say "certainly" or "certainly not".

Systems: open-vocabulary-detection
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.nn.detection.heads import PRIOR

TINY = 1e-6


def shorten_to_one(x: Tensor) -> Tensor:
    """x / (‖x‖ + 10⁻⁶)"""
    return x / (x.norm(dim=-1, keepdim=True) + TINY)


class TextSimilarity(nn.Module):
    """OWL's head: regions x (b, n, d) and texts (q, p) or (b, q, p) -> logits (b, n, q)"""

    def __init__(self, width: int, joint: int):
        super().__init__()
        self.project = nn.Linear(width, joint)
        self.shift = nn.Linear(width, 1)
        self.scale = nn.Linear(width, 1)

    def forward(self, x: Tensor, texts: Tensor) -> Tensor:
        cosine = shorten_to_one(self.project(x)) @ shorten_to_one(texts).mT
        return (cosine + self.shift(x)) * (F.elu(self.scale(x)) + 1)


class ContrastiveScore(nn.Module):
    """One shift and one scale for all: regions (b, n, p), texts (q, p) -> logits (b, n, q). Classes begin unlikely."""

    def __init__(self, scale: float = 2.0):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(scale))
        self.shift = nn.Parameter(torch.tensor(-math.log((1 - PRIOR) / PRIOR)))

    def forward(self, x: Tensor, texts: Tensor) -> Tensor:
        return self.scale.exp() * (shorten_to_one(x) @ shorten_to_one(texts).mT) + self.shift
