"""What tells a transformer where a token stands: a vector added to the embedding, or a number added to the score.

    x_t = e_t + p_t                 added to the INPUT embedding, before the first attention (VOM 11.2, DLD 6.10)
    x_t = [e_t, p_t]                appended: the width grows, and every later cost with it
    x_t = e_t                       none: attention sees a set

    p_t = sinusoid of t             no parameters, any length
    p_t = P[t]                      learned, P (L_max, d): a position from L_max on has no vector and is refused
    p_t = t,  p_t = (t+1)/(n+1)     one number, the codes that the books reject
    S_ij − m_h |i − j|              ALiBi: nothing is added to the embeddings

A code is a module from positions (t,) to vectors (t, d); `AddPositions` and `AppendPositions` take any of them. The
books do not multiply the embeddings by √d (VOM says so, the first transformer does); whoever wants it scales e.
DLD 6.9 says that p is added to the contextual embedding; 6.10, followed here, to the input embedding.

Systems: sinusoidal-positional-encoding, additive-position-information, learned-position-embeddings, alibi,
    position-encoding-labs
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from descend.errors import Mistake
from descend.ops.attention.positions import BASE, alibi, alibi_slopes, even, fractions, sinusoidal


class SinusoidalPositions(nn.Module):
    """positions (t,) -> (t, d), no parameters, any length."""

    def __init__(self, width: int, base: float = BASE):
        super().__init__()
        self.width, self.base = even(width), base

    def forward(self, positions: Tensor) -> Tensor:
        return sinusoidal(positions, self.width, self.base)


class LearnedPositions(nn.Module):
    """positions (t,) -> P[positions] (t, d); P has `context` rows and starts at N(0, 0.02²)."""

    def __init__(self, context: int, width: int):
        super().__init__()
        self.table = nn.Embedding(context, width)
        nn.init.normal_(self.table.weight, std=0.02)

    def forward(self, positions: Tensor) -> Tensor:
        context = self.table.num_embeddings
        if positions.numel() and not 0 <= int(positions.min()) <= int(positions.max()) < context:
            wrong = positions[(positions < 0) | (positions >= context)][0]
            raise Mistake(
                f"position {int(wrong)} has no embedding: there are {context}, 0..{context - 1}; shorten the text or "
                f"train with a larger context"
            )
        return self.table(positions)


class IndexPositions(nn.Module):
    """positions (t,) -> (t, 1): the index itself, unbounded."""

    def forward(self, positions: Tensor) -> Tensor:
        return positions[:, None].float()


class FractionPositions(nn.Module):
    """positions (t,) -> (t, 1): (t+1)/(n+1) of a text of n positions; it depends on n."""

    def forward(self, positions: Tensor) -> Tensor:
        return fractions(len(positions)).to(positions.device)[:, None]


class AddPositions(nn.Module):
    """x (b, t, d) -> x + p; a code of width 1 is added to every feature."""

    def __init__(self, code: nn.Module):
        super().__init__()
        self.code = code

    def forward(self, x: Tensor) -> Tensor:
        p: Tensor = self.code(torch.arange(x.shape[1], device=x.device))
        return x + p.to(x.dtype)


class AppendPositions(nn.Module):
    """x (b, t, d) -> [x, p] (b, t, d + width of the code)."""

    def __init__(self, code: nn.Module):
        super().__init__()
        self.code = code

    def forward(self, x: Tensor) -> Tensor:
        p: Tensor = self.code(torch.arange(x.shape[1], device=x.device))
        return torch.cat([x, p.to(x.dtype).expand(len(x), -1, -1)], dim=-1)


class Alibi(nn.Module):
    """−m_h |i − j| (1, h, t, s), which `attend` takes as its mask. No parameters."""

    slopes: Tensor

    def __init__(self, heads: int):
        super().__init__()
        self.heads = heads
        self.register_buffer("slopes", alibi_slopes(heads), persistent=False)

    def forward(self, t: int, s: int) -> Tensor:
        """For t queries that are the last of s positions."""
        return alibi(self.heads, t, s).to(self.slopes)[None]
