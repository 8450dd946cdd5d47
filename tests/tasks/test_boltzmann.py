"""Contrastive divergence of a Boltzmann machine by Gibbs sampling."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from descend.models.rbm import RBM
from descend.ops.energy.gibbs import log_partition
from descend.seeds import generator
from descend.tasks.boltzmann import BoltzmannDivergence, PersistentBoltzmann, to_bits
from tests.close import close
from tests.models.test_rbm import machine
from tests.sampling.test_gibbs import all_bits

pytestmark = pytest.mark.system("gibbs-contrastive-divergence")
DOUBLE = torch.float64


def uniform(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=generator(seed), dtype=DOUBLE)


def batch(n: int = 8, k: int = 2) -> dict[str, Tensor]:
    x = uniform(n, 4, seed=1)
    return {"x": x, "for_hidden": uniform(n, k, 3, seed=2), "for_visible": uniform(n, k, 4, seed=3)}


def rounds_by_hand(model: RBM, v: Tensor, given: dict[str, Tensor]) -> Tensor:
    with torch.no_grad():
        for k in range(given["for_hidden"].shape[1]):
            h = (given["for_hidden"][:, k] < model.hidden_probability(v)).double()
            v = (given["for_visible"][:, k] < model.visible_probability(h)).double()
    return v


@pytest.mark.system("gibbs-contrastive-divergence", "cd-k", "gradient")
@pytest.mark.parametrize("k", [1, 3])
def test_cd_k_has_the_textbooks_gradient(k: int) -> None:
    """∂/∂W = mean over samples of v₋ p(h | v₋)ᵀ − mean over data of v₊ p(h | v₊)ᵀ, as a loss with a minus."""
    model, given = machine(), batch(k=k)
    [move] = BoltzmannDivergence(model).moves(given)
    found = move.value().total()
    slopes = torch.autograd.grad(found, [model.weight, model.visible_bias, model.hidden_bias])
    plus, minus = to_bits(given["x"]), rounds_by_hand(model, to_bits(given["x"]), given)
    with torch.no_grad():
        p, q = model.hidden_probability(plus), model.hidden_probability(minus)
        close(slopes[0], (minus.T @ q - plus.T @ p) / 8)
        close(slopes[1], minus.mean(0) - plus.mean(0))
        close(slopes[2], q.mean(0) - p.mean(0))


@pytest.mark.system("gibbs-contrastive-divergence", "gradient")
def test_cd_points_where_the_likelihood_does() -> None:
    """Against the exact gradient by enumeration, over many chains: the same direction, not the same size."""
    model, n = machine(seed=4), 20_000
    data = all_bits(4)[torch.randint(16, (n,), generator=generator(5))]
    exact = torch.autograd.grad(model(data).mean() + log_partition(model(all_bits(4))), list(model.parameters()))
    given = {"x": data, "for_hidden": uniform(n, 1, 3, seed=6), "for_visible": uniform(n, 1, 4, seed=7)}
    [move] = BoltzmannDivergence(model).moves(given)
    ours = torch.autograd.grad(move.value().total(), list(model.parameters()))
    a, b = (torch.cat([g.flatten() for g in grads]) for grads in (ours, exact))
    assert torch.nn.functional.cosine_similarity(a, b, 0) > 0.7
    assert abs(float(a.norm() / b.norm()) - 1) > 0.1


@pytest.mark.system("gibbs-contrastive-divergence", "cd-k")
@pytest.mark.system("persistent-contrastive-divergence")
@pytest.mark.system("persistent-contrastive-divergence", "buffer")
def test_persistent_chains_go_on() -> None:
    model, given = machine(), {**batch(), "chain": torch.tensor([3, 0, 7, 9, 12, 1, 5, 14])}
    start = to_bits(uniform(16, 4, seed=8))
    task = PersistentBoltzmann(model, start)
    for _ in range(2):
        before = task.chains.clone()
        for move in task.moves(given):
            found = move.value()
        walked = rounds_by_hand(model, before[given["chain"]], given)
        assert torch.equal(task.chains[given["chain"]], walked)
        close(found.terms["contrast"], model(to_bits(given["x"])).mean() - model(walked).mean())
    assert torch.equal(task.chains[2], start[2])
    assert "chains" in task.state_dict()


def test_numbers_become_bits() -> None:
    assert to_bits(torch.tensor([[[0.2, 0.51], [0.5, 1.0]]])).tolist() == [[0.0, 1.0, 0.0, 1.0]]


@pytest.mark.system("gibbs-contrastive-divergence", "cd-k")
@pytest.mark.parametrize("method", ["persistent", "from-data"])
def test_training_raises_the_likelihood(method: str) -> None:
    """Two patterns of four bits; the exact likelihood by enumeration rises with both methods."""
    torch.manual_seed(0)
    model, random = machine(seed=9), generator(10)
    with torch.no_grad():
        model.weight.mul_(0.01)
    patterns = torch.tensor([[1.0, 1, 0, 0], [0, 0, 1, 1]], dtype=DOUBLE)
    chains = to_bits(uniform(64, 4, seed=11))
    task = PersistentBoltzmann(model, chains) if method == "persistent" else BoltzmannDivergence(model)
    optim = torch.optim.SGD(model.parameters(), 0.2)

    def likelihood() -> float:
        with torch.no_grad():
            return float((-model(patterns) - log_partition(model(all_bits(4)))).mean())

    before = likelihood()
    for _ in range(300):
        x = patterns[torch.randint(2, (64,), generator=random)]
        u = [torch.rand(64, 1, n, generator=random, dtype=DOUBLE) for n in (3, 4)]
        given = {"x": x, "for_hidden": u[0], "for_visible": u[1], "chain": torch.arange(64)}
        for move in task.moves(given):
            optim.zero_grad()
            move.value().total().backward()
            optim.step()
    assert likelihood() > before + 0.8
    assert likelihood() > -1.4
