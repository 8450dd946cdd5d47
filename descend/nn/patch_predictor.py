"""I-JEPA's predictor: what the encoder would say of some patches, from what it says of others.

    [W_in h_c + e_c ; m + e_t] -> blocks -> norm -> W_out        of the places t only

h_c (b, K, d): vectors of the context patches; m: one learned token for every place that is asked for; e: learned
positions. Narrower than the encoder, so that what is known about an image must be in the encoder.

Systems: jepa
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from descend.nn.encoder import Encoder, PreNormBlock
from descend.nn.init import uniform_, xavier

POSITION = 0.3  # standard deviation of positions at the start


class PatchPredictor(nn.Module):
    """`places` patches, vectors of `inputs` numbers inside and outside, `width` in between."""

    def __init__(self, places: int, inputs: int, width: int, depth: int, heads: int):
        super().__init__()
        self.enter, self.leave = nn.Linear(inputs, width), nn.Linear(width, inputs)
        self.asked = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.positions = nn.Parameter(torch.randn(places, width) * POSITION)
        self.encoder = Encoder(PreNormBlock(width, heads, 4 * width, nn.GELU(), 0.0, 1e-6) for _ in range(depth))
        self.norm = nn.LayerNorm(width, 1e-6)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                uniform_(module.weight, xavier)
                nn.init.zeros_(module.bias)

    def forward(self, h: Tensor, context: Tensor, targets: Tensor) -> Tensor:
        """h (b, K, d) at places context (b, K) -> vectors at the places targets (b, M, n): (b, M, n, d).

        The blocks are predicted one by one, without sight of each other.
        """
        known = self.enter(h) + self.positions[context]
        asked = self.asked + self.positions[targets]  # (b, M, n, width)
        b, m, n, _ = asked.shape
        known = known[:, None].expand(b, m, *known.shape[1:])
        z = self.encoder(torch.cat([known, asked], dim=2).flatten(0, 1))
        found: Tensor = self.leave(self.norm(z[:, -n:]))
        return found.unflatten(0, (b, m))
