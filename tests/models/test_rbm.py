"""The restricted Boltzmann machine against enumeration and scikit-learn's BernoulliRBM."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.neural_network import BernoulliRBM
from torch import Tensor

from descend.contracts import Generates, Wish
from descend.models.rbm import RBM, RBMConfig
from descend.ops.energy.gibbs import gibbs, log_partition
from descend.sampling.chance import PerExample
from descend.sampling.gibbs import gibbs_blocks
from descend.seeds import generator
from descend.tasks.boltzmann import pseudo_likelihood
from tests.close import close
from tests.sampling.test_gibbs import all_bits, frequencies

pytestmark = pytest.mark.system("gibbs-contrastive-divergence")
DOUBLE = torch.float64


def machine(visible: int = 4, hidden: int = 3, seed: int = 0) -> RBM:
    model = RBM(RBMConfig(shape=(visible,), hidden=hidden)).double()
    random = generator(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=random, dtype=DOUBLE))
    return model


def theirs(model: RBM) -> BernoulliRBM:
    found = BernoulliRBM(model.config.hidden, random_state=np.random.RandomState(0))
    found.components_ = model.weight.detach().numpy().T
    found.intercept_hidden_, found.intercept_visible_ = (
        b.detach().numpy() for b in (model.hidden_bias, model.visible_bias)
    )
    return found


@pytest.mark.system("gibbs-contrastive-divergence", "rbm")
def test_energies_by_enumeration() -> None:
    """F(v) = −log Σ_h e^−E, and both conditionals are those of the joint table."""
    model, v, h = machine(), all_bits(4), all_bits(3)
    with torch.no_grad():
        table = model.energy(v[:, None].expand(-1, 8, -1).reshape(-1, 4), h.repeat(16, 1)).view(16, 8)
        by_hand = -torch.stack(
            [v[:, i] * model.weight[i, j] * h[k, j] for k in range(8) for i in range(4) for j in range(3)]
        ).view(8, 12, 16).sum(1).T - v @ model.visible_bias[:, None] - (h @ model.hidden_bias)[None]  # fmt: skip
        close(table, by_hand)
        close(model(v), -log_partition(table))
        given = gibbs(table)
        close(given @ h, model.hidden_probability(v))
        close(gibbs(table.T) @ v, model.visible_probability(h))


@pytest.mark.system("gibbs-contrastive-divergence", "rbm")
def test_as_scikit_learn() -> None:
    model, v = machine(6, 5), all_bits(6)
    other = theirs(model)
    with torch.no_grad():
        close(model(v), torch.from_numpy(other._free_energy(v.numpy())))
        close(model.features(v), torch.from_numpy(other.transform(v.numpy())))
        # scikit-learn turns one random bit; its mean over many draws is our sum over all bits.
        many = np.mean([other.score_samples(v.numpy()) for _ in range(400)])
        assert abs(float(pseudo_likelihood(model, v).mean()) - many) < 0.1


@pytest.mark.system("gibbs-contrastive-divergence", "rbm")
def test_the_pseudo_likelihood_is_the_product_of_conditionals() -> None:
    model, v = machine(), all_bits(4)
    with torch.no_grad():
        p = gibbs(model(v))
        total = torch.zeros(16, dtype=DOUBLE)
        for i in range(4):
            turned = v.clone()
            turned[:, i] = 1 - turned[:, i]
            places = (turned @ torch.tensor([8.0, 4.0, 2.0, 1.0], dtype=DOUBLE)).long()
            total += (p / (p + p[places])).log()
            close(model.turned_free_energies(v)[:, i], model(turned))
        close(pseudo_likelihood(model, v), total)


@pytest.mark.system("gibbs-contrastive-divergence", "gibbs-exact")
def test_gibbs_frequencies_are_the_exact_probabilities() -> None:
    model, random, n = machine(seed=1), generator(2), 30_000
    with torch.no_grad():
        v = (torch.rand(n, 4, generator=random) < 0.5).double()
        rounds = ((torch.rand(n, 3, generator=random), torch.rand(n, 4, generator=random)) for _ in range(40))
        v = gibbs_blocks(model.hidden_probability, model.visible_probability, v, rounds)
        exact = gibbs(model(all_bits(4)))
    assert (frequencies(v) - exact).abs().max() < 0.012


def test_new_examples_have_the_models_means() -> None:
    """Each example has its own random numbers: the third of four is the first of a batch that begins with it."""
    model = machine(seed=3)
    assert isinstance(model, Generates)
    with torch.no_grad():
        made = model.generate(PerExample(0, 1500), Wish(steps=20)).double()
        exact = gibbs(model(all_bits(4))) @ all_bits(4)
        assert (made.mean(0) - exact).abs().max() < 0.04
        assert torch.equal(
            model.generate(PerExample(0, 4), Wish(steps=5))[2], model.generate(PerExample(0, 1, 2), Wish(steps=5))[0]
        )
        assert RBM(RBMConfig(shape=(1, 2, 3), hidden=2)).generate(PerExample(0, 4), Wish(steps=2)).shape == (4, 1, 2, 3)


def test_gradcheck() -> None:
    model, v = machine(), all_bits(4)[3:9]

    def energy(weight: Tensor, visible: Tensor, hidden: Tensor) -> Tensor:
        given = {"weight": weight, "visible_bias": visible, "hidden_bias": hidden}
        found: Tensor = torch.func.functional_call(model, given, (v,))
        return found

    assert torch.autograd.gradcheck(energy, tuple(p.detach().requires_grad_() for p in model.parameters()))
