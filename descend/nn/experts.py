"""A mixture of experts: many feed-forward networks, of which each token passes through a few.

    y = Σ_{e in T_k(x)} g_e(x) E_e(x)          E_e(x) = W_{3,e} (Swish(W_{2,e} x) ⊙ W_{1,e} x)

The parameters grow with N, the arithmetic only with k: the tokens are sorted by expert, each expert multiplies the rows
that are its own, and the results go back to their tokens. Of the parameters, k/N holds for the experts alone; with
attention and embeddings Mixtral has 12.88 of 46.70 billion active, not 2/8 (an erratum of S940 12.4).

A router is a module of its own, since it is the equation that the books differ in (`descend.ops.routing`).

Systems: mixture-of-experts
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from descend.ops.routing import capacity, gates, noisy, top_k, top_k_renormalised, within_capacity


class Routing(NamedTuple):
    """Where n tokens go."""

    weight: Tensor
    """(n, k): what the experts' outputs are multiplied by"""
    chosen: Tensor
    """(n, k): the experts"""
    p: Tensor
    """(n, N): the gates of all experts, which the balancing loss reads"""


class Router(nn.Module):
    """p = softmax(W_g x), the k largest, renormalised (MF 40.4, Mixtral)."""

    def __init__(self, width: int, experts: int, k: int):
        super().__init__()
        if not 0 < k <= experts:
            raise ValueError(f"{k} of {experts} experts: choose at least 1 and at most all")
        self.gate, self.k = nn.Linear(width, experts, bias=False), k

    def forward(self, x: Tensor) -> Routing:
        p = gates(self.gate(x))
        return Routing(*top_k_renormalised(p, self.k), p)


class NoisyRouter(Router):
    """p = softmax(W_g x + noise), the k largest as they are (S940 12.4); the noise is there in training only."""

    def __init__(self, width: int, experts: int, k: int):
        super().__init__(width, experts, k)
        self.noise = nn.Linear(width, experts, bias=False)

    def forward(self, x: Tensor) -> Routing:
        p = gates(noisy(self.gate(x), self.noise(x)) if self.training else self.gate(x))
        return Routing(*top_k(p, self.k), p)


class Experts(nn.Module):
    """N gated networks without biases, stacked: gate and up (N, h, d), down (N, d, h)."""

    def __init__(self, width: int, hidden: int, experts: int, activation: nn.Module):
        super().__init__()
        self.gate, self.up = (nn.Parameter(torch.empty(experts, hidden, width)) for _ in range(2))
        self.down = nn.Parameter(torch.empty(experts, width, hidden))
        self.activation = activation
        for w in (self.gate, self.up, self.down):
            nn.init.uniform_(w, -(w.shape[2] ** -0.5), w.shape[2] ** -0.5)

    def __len__(self) -> int:
        return len(self.down)

    def forward(self, x: Tensor, counts: list[int]) -> Tensor:
        """x (n, d), whose first counts[0] rows belong to expert 0, the next counts[1] to expert 1, and so on."""
        weights = zip(self.gate.unbind(0), self.up.unbind(0), self.down.unbind(0), x.split(counts), strict=True)
        return torch.cat([
            F.linear(self.activation(F.linear(rows, gate)) * F.linear(rows, up), down)
            for gate, up, down, rows in weights
            if torch.is_grad_enabled() or len(rows)  # with a gradient all take part, so that none is left without one
        ])  # fmt: skip


class ExpertNetworks(nn.ModuleList):
    """Any networks as experts, one by one; mixtures among them make a mixture of mixtures (DLN)."""

    def forward(self, x: Tensor, counts: list[int]) -> Tensor:
        """As of `Experts`."""
        return torch.cat([expert(rows) for expert, rows in zip(self, x.split(counts), strict=True)])


def dispatch(x: Tensor, weight: Tensor, index: Tensor, experts: Experts | ExpertNetworks) -> Tensor:
    """Σ_k weight · E_index(x): x (n, d), weight and index (n, k) -> (n, d)."""
    n, k = index.shape
    if torch.compiler.is_exporting():  # a graph has no groups whose sizes the data decide: every expert answers all
        every = experts(x.repeat(len(experts), 1), [n] * len(experts)).unflatten(0, (len(experts), n))
        gates = weight.new_zeros(n, len(experts)).scatter(1, index, weight)
        return torch.einsum("ne,end->nd", gates.to(every.dtype), every)
    flat = index.flatten()
    order = flat.argsort(stable=True)  # the n k visits, expert by expert
    counts = flat.bincount(minlength=len(experts)).tolist()
    y = experts(x.index_select(0, order // k), counts)
    back = torch.empty_like(order).scatter_(0, order, torch.arange(n * k, device=order.device))
    return (y.index_select(0, back).view(n, k, -1) * weight[..., None].to(y.dtype)).sum(1)


class MixtureOfExperts(nn.Module):
    """x (…, d) -> (…, d)"""

    def __init__(self, router: nn.Module, experts: Experts | ExpertNetworks):
        super().__init__()
        self.router, self.experts = router, experts

    def forward(self, x: Tensor) -> Tensor:
        flat = x.flatten(0, -2)
        routing: Routing = self.router(flat)
        return dispatch(flat, routing.weight, routing.chosen, self.experts).view_as(x)


class CappedMixture(MixtureOfExperts):
    """The same with room for C = ⌈factor · k · tokens / N⌉ visits an expert; those beyond it add nothing.

    All first choices come before all second ones, so that a token loses its second expert first.
    """

    def __init__(self, router: nn.Module, experts: Experts | ExpertNetworks, factor: float = 1.25):
        super().__init__(router, experts)
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        flat = x.flatten(0, -2)
        routing: Routing = self.router(flat)
        room = capacity(routing.chosen.numel(), len(self.experts), self.factor)
        kept = within_capacity(routing.chosen.T.flatten(), len(self.experts), room).view_as(routing.chosen.T).T
        return dispatch(flat, routing.weight * kept, routing.chosen, self.experts).view_as(x)


class SharedExperts(MixtureOfExperts):
    """The same, and a network that every token passes through (DeepSeek)."""

    def __init__(self, router: nn.Module, experts: Experts | ExpertNetworks, shared: nn.Module):
        super().__init__(router, experts)
        self.shared = shared

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + self.shared(x)


def total_and_active(model: nn.Module, k: int) -> tuple[int, int]:
    """All parameters, and those that one token meets when it passes through k experts of each mixture."""
    total = sum(p.numel() for p in model.parameters())
    return total, total - count_idle(model, k)


def count_idle(module: nn.Module, k: int) -> int:
    """Parameters that one token does not meet; the experts of a mixture are of one size."""
    if not isinstance(module, Experts | ExpertNetworks):
        return sum(count_idle(child, k) for child in module.children())
    total = sum(p.numel() for p in module.parameters())
    met = total - sum(count_idle(child, k) for child in module.children())
    return total - k * met // len(module)
