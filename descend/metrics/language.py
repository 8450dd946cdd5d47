"""Perplexity: among how many equally likely tokens the model is undecided, and bits per byte.

    PPL = exp( (1/T) Σ_t − log p_t )                              over all tokens (VOM 13.1.3)
    PPL = 2^( (1/N) Σ_n (1/T_n) Σ_t − log2 p_{n,t} )              each SEQUENCE weighs the same (MF-B.84)
    bits per byte = Σ_t − log2 p_t / bytes of the text            comparable between tokenizers

Systems: perplexity
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def perplexity(losses: Tensor) -> Tensor:
    """exp of the mean of the token losses (nats)."""
    return losses.mean().exp()


def exponentiate(loss: float) -> float:
    """The perplexity of a mean loss; infinite where the loss is beyond 709 nats, as that of spoilt weights is."""
    return math.inf if loss > 709 else math.exp(loss)


def sequence_perplexity(losses: list[Tensor]) -> Tensor:
    """exp of the mean over sequences of each sequence's mean loss; base 2 or e gives the same number."""
    return torch.stack([sequence.mean() for sequence in losses]).mean().exp()


def bits_per_byte(total_loss: float, byte_count: float) -> float:
    """Total loss in nats over a text of this many bytes."""
    return total_loss / math.log(2) / byte_count
