"""Random numbers that belong to a key, so that whoever needs them again can have them again."""

from __future__ import annotations

import numpy as np
import torch


def generator(*key: int) -> torch.Generator:
    """Random numbers that belong to a key such as (seed, epoch). (SeedSequence mixes, so near keys do not resemble.)"""
    mixed = np.random.SeedSequence([k % 2**64 for k in key]).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(mixed))
