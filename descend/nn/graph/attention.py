"""Graph attention (GAT): how much a node hears of each neighbour, and of itself, is learned.

    h'_v = combine_heads( Σ_{u ∈ N(v) ∪ {v}} α_vu W h_u ) + b
    α_vu = e^{s(v, u)} / Σ_{w ∈ N(v) ∪ {v}} e^{s(v, w)}

    additive    s(v, u) = LeakyReLU_{0.2}( a_lᵀ W h_v + a_rᵀ W h_u )          one layer on [W h_v ‖ W h_u], as published
    dot         s(v, u) = (W h_v) · (W h_u) / √c
    network     s(v, u) = any network on [W h_v ‖ W h_u]

DLN leaves the scoring open: A(h_v, h_u) = e^s is not negative, whatever s is. Its normaliser runs over N(v) alone
while α_vv is used too, so that the weights of a node sum to more than 1: an erratum; here v is among its
neighbours. Each head has a W, a score and weights of its own. Heads are put end to end, and averaged in the last
layer. Dropout stands before W and on α. With equal scores it is the mean over v and its neighbours.

Systems: gat
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.nn.graph.features import FeatureLinear
from descend.ops.graph.aggregate import attend, dot_pairs, take_sources
from descend.ops.graph.structure import Links
from descend.ops.hashed_dropout import drop_hashed


class AdditiveScore(nn.Module):
    """LeakyReLU(a_lᵀ h_v + a_rᵀ h_u), a for each head."""

    def __init__(self, heads: int, size: int, slope: float = 0.2):
        super().__init__()
        self.target, self.source = (nn.Parameter(torch.empty(heads, size)) for _ in range(2))
        self.slope = slope
        for a in (self.target, self.source):
            nn.init.xavier_uniform_(a)

    def forward(self, h: Tensor, links: Links) -> Tensor:
        """Of h (n, heads, size), a score for each edge and head (e, heads)."""
        here, there = (h * self.target).sum(dim=-1), (h * self.source).sum(dim=-1)
        return F.leaky_relu(take_sources(here, links.reversed) + take_sources(there, links), self.slope)


class DotScore(nn.Module):
    """h_v · h_u / √size, for each head."""

    def forward(self, h: Tensor, links: Links) -> Tensor:
        """(e, heads)"""
        return torch.stack([dot_pairs(x, x, links) for x in h.unbind(1)], dim=1) / h.shape[-1] ** 0.5


class NetworkScore(nn.Module):
    """A network on [h_v ‖ h_u] (.., 2 size) that gives one number; the heads share it."""

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network

    def forward(self, h: Tensor, links: Links) -> Tensor:
        """(e, heads)"""
        ends = torch.cat([take_sources(h, links.reversed), take_sources(h, links)], dim=-1)
        return self.network(ends).squeeze(-1)


class HeadMean(nn.Module):
    """(n, heads, c) -> (n, c). The other way is `nn.Flatten(1)`: heads end to end."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mean(dim=1)


class GraphAttention(nn.Module):
    """Nodes (n, inputs) -> (n, heads · size), or (n, size) where `combine` averages the heads."""

    def __init__(
        self,
        inputs: int,
        heads: int,
        size: int,
        score: nn.Module,
        combine: nn.Module,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
    ):
        super().__init__()
        self.heads, self.size, self.attention_dropout = heads, size, attention_dropout
        self.linear = FeatureLinear(inputs, heads * size, dropout=dropout)
        self.score, self.combine = score, combine
        self.bias = nn.Parameter(torch.zeros(self.combine(torch.empty(1, heads, size)).shape[1]))

    def forward(self, x: Tensor, links: Links) -> Tensor:
        return self.hear(x, links.looped.arranged)[0]

    def attend(self, x: Tensor, links: Links) -> tuple[Tensor, Tensor]:
        """What comes out, and α (e + n, heads): of the edges, then of every node to itself."""
        y, share = self.hear(x, links.looped.arranged)
        return y, torch.empty_like(share).index_copy(0, links.looped.incoming.order, share)

    def hear(self, x: Tensor, links: Links) -> tuple[Tensor, Tensor]:
        """What comes out, and α, of edges with loops among them."""
        h = self.linear(x).view(-1, self.heads, self.size)
        z = self.score(h, links)
        drops = self.training and self.attention_dropout > 0
        y, share = attend(z, h, links, drop_hashed(torch.ones_like(z), self.attention_dropout) if drops else None)
        return self.combine(y) + self.bias, share
