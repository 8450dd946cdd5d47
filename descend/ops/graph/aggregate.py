"""What a node hears: values brought together by sum, mean, max or a softmax, over the edges that lead to each node.

    sum_neighbours    y_v = Σ_{k: u → v} w_k x_u                    one sparse product y = A x, its gradient Aᵀ ȳ
    max_neighbours    y_v = max_{k: u → v} x_u
    attend            y_v = Σ_{k: u → v} α_k x_u,   α_k = e^{z_k} / Σ_{l: · → v} e^{z_l}
    sum_groups        y_i = Σ_{j: owner_j = i} x_j                  of values that are there already: nodes of a graph
    softmax_groups    α_j = e^{z_j} / Σ_{i: owner_i = owner_j} e^{z_i}

None of them depends on the order of nodes or edges. A sum over nothing is 0, and so is a mean, and a maximum. On
CPUs the work over edges is done by compiled code (`descend.native.graph`), which never writes out what an edge
carries.

Systems: message-passing, attribute-pooling-and-readout
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from descend.native import graph as native
from descend.ops.graph.structure import Incidence, Links

HALF = (torch.bfloat16, torch.float16)


class PairSum(torch.autograd.Function):
    """Σ over the pairs of each target, by compiled code."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor | None, pairs: Incidence) -> Tensor:
        ctx.pairs = pairs
        ctx.save_for_backward(x, weight)
        return native.sum_pairs(in_order(pairs), weight, x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        (x, weight), pairs, g = ctx.saved_tensors, ctx.pairs, grads[0]
        into_x = PairSum.apply(g, weight, pairs.reversed) if ctx.needs_input_grad[0] else None
        into_weight = PairDot.apply(g, x, pairs) if ctx.needs_input_grad[1] else None
        return into_x, into_weight, None


class PairDot(torch.autograd.Function):
    """A product a_{target} · b_{source} for each pair, by compiled code."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, pairs: Incidence) -> Tensor:
        ctx.pairs = pairs
        ctx.save_for_backward(a, b)
        return native.dot_pairs(pairs.target, pairs.source, a, b)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        (a, b), pairs, g = ctx.saved_tensors, ctx.pairs, grads[0]
        into_a = PairSum.apply(b, g, pairs) if ctx.needs_input_grad[0] else None
        into_b = PairSum.apply(a, g, pairs.reversed) if ctx.needs_input_grad[1] else None
        return into_a, into_b, None


class PairTake(torch.autograd.Function):
    """x_{source} of each pair; its gradient is a sum over the pairs of each source."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, pairs: Incidence) -> Tensor:
        ctx.pairs = pairs
        return x.index_select(0, pairs.source)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        rows = ctx.pairs.outgoing
        return native.sum_pairs(native.Pairs(rows.starts, rows.order, rows.order), None, grads[0]), None


class PairMax(torch.autograd.Function):
    """The largest over the pairs of each target, by compiled code; equal ones share the gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, pairs: Incidence) -> Tensor:
        y, ties = native.max_pairs(in_order(pairs), x)
        ctx.pairs = pairs
        ctx.save_for_backward(x, y, ties)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        x, y, ties = ctx.saved_tensors
        return native.max_pairs_backward(in_order(ctx.pairs.reversed), x, y, ties, grads[0]), None


class PairAttention(torch.autograd.Function):
    """Softmax and weighted sum over the pairs of each target, by compiled code."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, h: Tensor, keep: Tensor | None, pairs: Incidence) -> tuple[Tensor, Tensor]:
        y, share = native.attend(in_order(pairs), z, keep, h)
        ctx.pairs = pairs
        ctx.save_for_backward(keep, h, share)
        ctx.mark_non_differentiable(share)
        return y, share

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:
        (keep, h, share), pairs = ctx.saved_tensors, ctx.pairs
        dz, dh = native.attend_backward(in_order(pairs), in_order(pairs.reversed), keep, h, share, grads[0])
        return dz, dh, None, None


def in_order(pairs: Incidence) -> native.Pairs:
    """As compiled code wants them."""
    return native.Pairs(pairs.incoming.starts, pairs.senders, pairs.incoming.order)


def sum_pairs(x: Tensor, pairs: Incidence, weight: Tensor | None = None) -> Tensor:
    """y_i = Σ_{k: c → i} w_k x_c of (sources, ..), weights (e) or all 1 -> (targets, ..)"""
    if native.usable(x, *(() if weight is None else (weight,))):
        return PairSum.apply(x.flatten(1), weight, pairs).view(-1, *x.shape[1:])
    if x.dtype in HALF:  # a sum of many rounded numbers is rounded once
        return sum_pairs(x.float(), pairs, None if weight is None else weight.float()).to(x.dtype)
    told = x.index_select(0, pairs.source)
    told = told if weight is None else told * weight.view(-1, *(1,) * (x.dim() - 1))
    return sum_groups(told, pairs.target, pairs.targets)


def take_sources(x: Tensor, pairs: Incidence) -> Tensor:
    """What the source of each pair holds, (sources, ..) -> (e, ..); of `pairs.reversed`, what the target holds."""
    if native.usable(x):
        return PairTake.apply(x.flatten(1), pairs).view(-1, *x.shape[1:])
    return x.index_select(0, pairs.source)


def dot_pairs(a: Tensor, b: Tensor, pairs: Incidence) -> Tensor:
    """a_{target} · b_{source} for each pair: (targets, d) and (sources, d) -> (e)"""
    if native.usable(a, b):
        return PairDot.apply(a, b, pairs)
    return (a.index_select(0, pairs.target) * b.index_select(0, pairs.source)).sum(dim=-1)


def sum_neighbours(x: Tensor, links: Links, weight: Tensor | None = None) -> Tensor:
    """y_v = Σ_{k: u → v} w_k x_u of nodes (n, d), weights (e) or all 1 -> (n, d)"""
    return sum_pairs(x, links, weight)


def mean_neighbours(x: Tensor, links: Links) -> Tensor:
    """y_v = Σ_{u ∈ N(v)} x_u / |N(v)|; 0 for a node without neighbours."""
    return sum_pairs(x, links) / links.degree.clamp_min(1)[:, None].to(x.dtype)


def max_neighbours(x: Tensor, links: Links) -> Tensor:
    """y_v = max_{u ∈ N(v)} x_u for each feature; 0 for a node without neighbours."""
    if native.usable(x):
        return PairMax.apply(x, links)
    return max_groups(x.index_select(0, links.source), links.target, links.n)


def attend(z: Tensor, h: Tensor, links: Links, keep: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """y (n, heads, c) of scores (e, heads) and values (n, heads, c), and the shares α (e, heads).

    `keep` (e, heads) multiplies the shares in the sum, as dropout does. The α that are returned carry no gradient.
    """
    if native.usable(z, h, *(() if keep is None else (keep,))):
        keep = None if keep is None else keep.contiguous()
        return PairAttention.apply(z, h, keep, links)
    share = softmax_groups(z, links.target, links.n)
    kept = share if keep is None else share * keep
    told = take_sources(h, links) * kept[..., None]
    return sum_groups(told, links.target, links.n), share.detach()


def sum_groups(x: Tensor, owner: Tensor, n: int) -> Tensor:
    """(m, ..) -> (n, ..)"""
    return x.new_zeros(n, *x.shape[1:]).index_add(0, owner, x)


def mean_groups(x: Tensor, owner: Tensor, n: int) -> Tensor:
    """(m, ..) -> (n, ..)"""
    counts = torch.bincount(owner, minlength=n).clamp_min(1).to(x.dtype)
    return sum_groups(x, owner, n) / counts.view(n, *(1,) * (x.dim() - 1))


def max_groups(x: Tensor, owner: Tensor, n: int) -> Tensor:
    """(m, ..) -> (n, ..); an equal share of the gradient for each that is the largest."""
    one = (1,) * (x.dim() - 1)
    index = owner.view(-1, *one).expand_as(x)
    # From −∞: torch counts what was there before among those that share, and 0 is often the largest.
    top = x.new_full((n, *x.shape[1:]), -torch.inf).scatter_reduce(0, index, x, "amax")
    return top.masked_fill(torch.bincount(owner, minlength=n).eq(0).view(n, *one), 0)


def softmax_groups(z: Tensor, owner: Tensor, n: int) -> Tensor:
    """(m, ..) -> (m, ..); the largest of each group is subtracted first, which changes nothing but the rounding."""
    top = max_groups(z.detach(), owner, n)
    e = (z - top.index_select(0, owner)).exp()
    return e / sum_groups(e, owner, n).index_select(0, owner)
