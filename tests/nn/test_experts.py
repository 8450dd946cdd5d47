"""A mixture of experts: sparse equals dense, only the chosen learn, cost follows the active experts."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from descend.nn.experts import (
    CappedMixture,
    ExpertNetworks,
    Experts,
    MixtureOfExperts,
    NoisyRouter,
    Router,
    SharedExperts,
    dispatch,
    total_and_active,
)
from descend.nn.gated_mlp import GatedMLP
from tests.close import close


def mixture(n: int = 4, k: int = 2, router: type[Router] = Router) -> MixtureOfExperts:
    torch.manual_seed(0)
    return MixtureOfExperts(router(6, n, k), Experts(6, 10, n, nn.SiLU())).double()


def gate(layer: MixtureOfExperts) -> nn.Linear:
    assert isinstance(layer.router, Router)
    return layer.router.gate


def x(*shape: int) -> Tensor:
    return torch.randn(*shape, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def dense(experts: Experts, x: Tensor) -> Tensor:
    """(n, N, d): every expert on every token."""
    rows = zip(experts.gate, experts.up, experts.down, strict=True)
    return torch.stack([F.linear(F.silu(x @ gate.T) * (x @ up.T), down) for gate, up, down in rows], 1)


@pytest.mark.system("mixture-of-experts", "two-gates", "sparse")
@pytest.mark.system("mixture-of-experts")
@pytest.mark.parametrize(("n", "k"), [(1, 1), (4, 1), (4, 2), (4, 4), (16, 3)])
@pytest.mark.parametrize("router", [Router, NoisyRouter])
def test_sparse_is_dense_with_the_other_gates_zero(n: int, k: int, router: type[Router]) -> None:
    layer, tokens = mixture(n, k, router).eval(), x(2, 9)
    p = gate(layer)(tokens).softmax(-1)
    kept = p * (p >= p.topk(k, -1).values[..., -1:])
    if router is Router:
        kept = kept / kept.sum(-1, keepdim=True)
    every = dense(layer.experts, tokens.flatten(0, 1)).view(2, 9, n, 6)
    close(layer(tokens), (kept[..., None] * every).sum(2))


@pytest.mark.system("mixture-of-experts", "one-expert")
@pytest.mark.system("mixture-of-experts")
def test_one_expert_is_the_plain_network_and_equal_experts_too() -> None:
    layer, tokens = mixture(1, 1), x(7)
    plain = GatedMLP(6, 10, nn.SiLU()).double()
    plain.load_state_dict({f"{name}.weight": p[0] for name, p in layer.experts.named_parameters()})
    close(layer(tokens), plain(tokens))
    many = mixture(5, 3)
    with torch.no_grad():
        for p in many.experts.parameters():
            p.copy_(p[:1].expand_as(p))
    close(many(tokens), dense(many.experts, tokens)[:, 0])


@pytest.mark.system("mixture-of-experts", "gradients")
@pytest.mark.system("mixture-of-experts")
def test_only_chosen_experts_learn_and_the_router_does() -> None:
    layer, tokens = mixture(16, 2), x(3)
    layer(tokens).square().sum().backward()
    chosen = set(layer.router(tokens).chosen.flatten().tolist())
    moved = {e for e in range(16) if layer.experts.up.grad[e].any()}  # type: ignore[index]
    assert moved == chosen
    assert gate(layer).weight.grad is not None
    assert gate(layer).weight.grad.abs().sum() > 0  # type: ignore[union-attr]


@pytest.mark.system("mixture-of-experts")
def test_gradients() -> None:
    experts = Experts(3, 4, 3, nn.SiLU()).double()
    weight = torch.rand(5, 2, dtype=torch.float64, requires_grad=True)
    chosen = torch.tensor([[0, 2], [1, 0], [2, 1], [0, 1], [2, 0]])
    rows = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda r, w: dispatch(r, w, chosen, experts), (rows, weight))

    def by_weights(*p: Tensor) -> Tensor:
        given = dict(zip(("gate", "up", "down"), p, strict=True))
        found: Tensor = torch.func.functional_call(experts, given, (rows, [2, 0, 3]))
        return found

    assert torch.autograd.gradcheck(
        by_weights, tuple(p.detach().clone().requires_grad_() for p in experts.parameters())
    )


@pytest.mark.system("mixtral", "cost")
@pytest.mark.system("mixture-of-experts", "sparse")
@pytest.mark.system("mixture-of-experts")
def test_cost_follows_the_active_experts() -> None:
    """Eight times the experts, the same arithmetic but for the router; in decoding, idle experts are not touched."""

    def flops(n: int) -> int:
        layer, tokens = mixture(n, 2), x(64)
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            layer(tokens)
        return counter.get_total_flops() - 2 * 64 * 6 * n

    assert flops(4) == flops(32) == 2 * 64 * 2 * 3 * 6 * 10


@pytest.mark.system("mixture-of-experts", "noise")
@pytest.mark.system("mixture-of-experts")
def test_noise_in_training_only_and_shared_experts() -> None:
    layer, tokens = mixture(8, 2, NoisyRouter), x(40)
    torch.manual_seed(0)
    assert not torch.equal(layer.train()(tokens), layer(tokens))
    assert torch.equal(layer.eval()(tokens), layer(tokens))
    shared = SharedExperts(layer.router, layer.experts, nn.Linear(6, 6).double())
    close(shared(tokens), layer(tokens) + shared.shared(tokens))


@pytest.mark.system("transformer-variant-registry", "nested")
@pytest.mark.system("mixture-of-experts")
def test_a_mixture_of_mixtures() -> None:
    """Hierarchical: a mixture may stand where any network stands."""
    inner = mixture(4, 2)
    outer = SharedExperts(Router(6, 3, 1).double(), Experts(6, 5, 3, nn.SiLU()).double(), inner)
    assert outer(x(2, 3)).shape == (2, 3, 6)
    total, active = total_and_active(outer.experts, 1)
    assert (total, active) == (3 * 90, 90)


@pytest.mark.system("mixture-of-experts", "counts")
def test_counts_and_mistakes() -> None:
    assert total_and_active(mixture(4, 2), 2) == (4 * 180 + 24, 2 * 180 + 24)
    with pytest.raises(ValueError, match="5 of 4 experts"):
        Router(6, 4, 5)


@pytest.mark.system("mixture-of-experts", "nested")
def test_experts_may_be_mixtures_themselves() -> None:
    """Two experts that are mixtures of four: a token meets one of two, and inside it one of four."""
    torch.manual_seed(0)
    inner = [MixtureOfExperts(Router(6, 4, 1), Experts(6, 10, 4, nn.SiLU())).double() for _ in range(2)]
    outer = MixtureOfExperts(NoisyRouter(6, 2, 1).double(), ExpertNetworks(inner)).eval()
    tokens = x(11)
    routing = outer.router(tokens)
    by_hand = torch.stack([w * inner[int(e)](row[None])[0] for w, e, row in zip(*routing[:2], tokens, strict=True)])
    close(outer(tokens), by_hand)
    assert routing.chosen.unique().tolist() == [0, 1]
    assert total_and_active(outer.experts, 1) == (2 * (4 * 180 + 24), 180 + 24)


@pytest.mark.system("mixture-of-experts", "nested")
def test_networks_of_any_kind_are_experts() -> None:
    torch.manual_seed(0)
    stacked = mixture(3, 2)
    apart = ExpertNetworks(GatedMLP(6, 10, nn.SiLU()).double() for _ in range(3))
    for e, network in enumerate(apart):
        network.load_state_dict({f"{name}.weight": p[e] for name, p in stacked.experts.named_parameters()})
    close(MixtureOfExperts(stacked.router, apart)(x(2, 5)), stacked(x(2, 5)))


@pytest.mark.system("mixture-of-experts", "capacity")
def test_visits_beyond_the_capacity_add_nothing() -> None:
    """Three visits an expert; first choices come first, in the order of the text."""
    free = mixture(4, 2)
    capped = CappedMixture(free.router, free.experts, factor=0.6)
    tokens = x(9)
    weight, chosen, _ = free.router(tokens)
    visits = [0] * 4
    kept = torch.zeros(9, 2, dtype=torch.float64)
    for choice in range(2):
        for row in range(9):
            visits[chosen[row, choice]] += 1
            kept[row, choice] = visits[chosen[row, choice]] <= 3  # ⌈0.6 · 18 / 4⌉
    every = dense(free.experts, tokens)
    picked = every.gather(1, chosen[..., None].expand(-1, -1, 6))
    assert 0 < kept[:, 0].mean() <= 1
    assert kept[:, 1].mean() < kept[:, 0].mean()
    close(capped(tokens), (kept[..., None] * weight[..., None] * picked).sum(1))
    close(CappedMixture(free.router, free.experts, factor=4.0)(tokens), free(tokens))
