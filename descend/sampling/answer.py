"""Answers of models that read a source: greedy decoding of a batch of sources, without padding and end tokens."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from descend.sampling.generate import generate


@torch.no_grad()
def answer_sources(model: Any, x: Tensor, longest: int, batch: int = 64) -> list[list[int]]:
    """The tokens that a model (`contracts.AnswersSource`) writes for sources x (n, s), at most `longest` each."""
    c, found = model.config, []
    device = next(model.parameters()).device
    for part in x.long().split(batch):
        part = part[:, : int((part != c.pad).any(0).sum())].to(device)
        begin = torch.full((len(part), 1), c.start, device=device)
        found += generate(model.decoder(part, part != c.pad), begin, longest, stop=[c.end])
    return [[token for token in row if token not in (c.end, c.pad)] for row in found]
