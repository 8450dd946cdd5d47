"""The losses of a vector-quantized autoencoder, from what its encoder found and the codebook's nearest entry.

    L = ‖x − x̂‖² + ‖sg[z_e] − e‖² + β ‖z_e − sg[e]‖²         sg: stop-gradient, β = 0.25 as published
        reconstruction   codebook: the entry moves to the code   commitment: the code stays near its entry

The book gives no loss; this is the original paper's. Each of the two distances is a mean over positions and examples of
the squared norm, so that they do not grow with the size of the grid.

    usage = exp(−Σ_v p_v log p_v)        perplexity of the tokens: how many entries are in use, 1 to V

Systems: vq-vae
"""

from __future__ import annotations

from torch import Tensor

from descend.losses.checks import same_shape


def codebook_loss(code: Tensor, entry: Tensor) -> Tensor:
    """‖sg[z_e] − e‖² of each position: (.., d), (.., d) -> (..)"""
    same_shape(code, entry, "codes and codebook entries")
    return (code.detach() - entry).square().sum(-1)


def commitment_loss(code: Tensor, entry: Tensor) -> Tensor:
    """‖z_e − sg[e]‖² of each position: (.., d), (.., d) -> (..)"""
    return codebook_loss(entry, code)


def usage(tokens: Tensor, vocab: int) -> Tensor:
    """exp of the entropy of how often each of `vocab` tokens occurs: tokens of any shape -> a number from 1 to vocab"""
    p = tokens.flatten().bincount(minlength=vocab).double()
    p = p / p.sum()
    return (-p.xlogy(p).sum()).exp()
