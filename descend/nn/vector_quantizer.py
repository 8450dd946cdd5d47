"""Vector quantization inside a network: each code becomes the nearest entry of a learned codebook.

    token = argmin_v ‖z_e − e_v‖²        z_q = e_token
    straight-through: the decoder is given z_e + sg[z_q − z_e], z_q in value; its gradient passes to z_e as it is

The codebook gets no gradient from the decoder, only from its own loss (`descend.losses.quantization`). Entries that no
code is near never move; `usage` of that file tells how many are in use.

Systems: vq-vae
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from descend.nn.codebook import Codebook


class Quantized(NamedTuple):
    """Of codes (.., d)."""

    straight: Tensor
    """z_q in value, with the gradient of z_e (.., d)."""
    entry: Tensor
    """z_q with the codebook's gradient (.., d)."""
    tokens: Tensor
    """(..)"""


class VectorQuantizer(nn.Module):
    """codes (.., d) <-> tokens (..) of a vocabulary"""

    def __init__(self, vocab: int, size: int):
        super().__init__()
        self.codebook = nn.Embedding(vocab, size)
        nn.init.uniform_(self.codebook.weight, -1 / vocab, 1 / vocab)

    def forward(self, code: Tensor) -> Quantized:
        tokens = self.tokens(code)
        entry = self.codebook(tokens)
        return Quantized(code + (entry - code).detach(), entry, tokens)

    @torch.no_grad()
    def tokens(self, code: Tensor) -> Tensor:
        """argmin_v ‖z_e − e_v‖²; ‖z_e‖² does not change which."""
        with torch.autocast(code.device.type, enabled=False):  # near entries need all digits
            e = self.codebook.weight
            return (e.square().sum(-1) - 2 * code.to(e.dtype) @ e.T).argmin(-1)

    @torch.no_grad()
    def place_entries(self, codes: Tensor, random: torch.Generator) -> None:
        """Set the entries to the centres of codes (n, d), so that all of them are in use at the start (k-means)."""
        self.codebook.weight.copy_(Codebook.learn(codes, len(self.codebook.weight), random).centres)

    def decode(self, tokens: Tensor) -> Tensor:
        """The entries of tokens (..): (.., d)"""
        found: Tensor = self.codebook(tokens)
        return found
