"""Penalties on weights: two scalings, weight decay, the MAP reading, no biases."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from descend.classic.ridge import ridge, ridge_of_half_mean_square
from descend.losses.penalties import (
    decay_of_prior,
    elastic_net,
    gaussian_prior,
    half_l2,
    l1,
    l2,
    weights,
    zero_share,
)
from descend.optim.proximal import decay
from descend.optim.rules import SGD, AdamW
from tests.close import close


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Tanh(), nn.Linear(4, 2)).double()


def data() -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(1)
    x = torch.randn(12, 4, dtype=torch.float64, generator=random)
    return x, x @ torch.tensor([1.0, -2.0, 0.0, 0.5], dtype=torch.float64) + torch.randn(12, generator=random).double()


@pytest.mark.system("l2-weight-decay")
@pytest.mark.system("l2-weight-decay", "two-scalings", "weights-only")
@pytest.mark.system("l1-penalty")
@pytest.mark.system("l1-penalty", "subgradient")
@pytest.mark.system("elastic-net")
@pytest.mark.system("elastic-net", "network-penalty")
def test_gradients_reach_matrices_only() -> None:
    """DLN-A.56: 2λw and λw, λ sign w; nothing for biases and gains."""
    for penalty, expected in (
        (lambda ws: l2(ws, 0.3), lambda w: 2 * 0.3 * w),
        (lambda ws: half_l2(ws, 0.3), lambda w: 0.3 * w),
        (lambda ws: l1(ws, 0.3), lambda w: 0.3 * w.sign()),
        (lambda ws: elastic_net(ws, 0.3, 0.25), lambda w: 0.3 * (0.25 * w.sign() + 0.75 * w)),
    ):
        model = network()
        penalty(weights(model)).backward()
        found = {name: p for name, p in model.named_parameters() if p.grad is not None}
        assert list(found) == ["0.weight", "3.weight"]
        for p in found.values():
            close(p.grad, expected(p))


@pytest.mark.system("l2-weight-decay")
@pytest.mark.system("l2-weight-decay", "two-scalings")
@pytest.mark.system("l1-penalty")
def test_norms_are_those_of_torch() -> None:
    ws = [torch.randn(3, 4, dtype=torch.float64), torch.randn(2, 5, 2, dtype=torch.float64)]
    flat = nn.utils.parameters_to_vector(ws)
    close(l2(ws, 0.7), 0.7 * torch.linalg.vector_norm(flat) ** 2)
    close(l2(ws, 0.7), 2 * half_l2(ws, 0.7))  # MF 7.2 against 8.4.1
    close(l1(ws, 0.7), 0.7 * torch.linalg.vector_norm(flat, ord=1))
    close(elastic_net(ws, 0.7, 1.0), l1(ws, 0.7))
    close(elastic_net(ws, 0.7, 0.0), half_l2(ws, 0.7))


@pytest.mark.system("l2-weight-decay")
@pytest.mark.system("l1-penalty")
@pytest.mark.system("elastic-net")
def test_gradcheck() -> None:
    w = torch.randn(3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(2), requires_grad=True)
    for f in (lambda w: l2([w], 0.3), lambda w: half_l2([w], 0.3), lambda w: l1([w], 0.3)):
        assert torch.autograd.gradcheck(f, w)
    assert torch.autograd.gradcheck(lambda w: elastic_net([w], 0.3, 0.4), w)


@pytest.mark.system("l2-weight-decay")
@pytest.mark.system("l2-weight-decay", "decay")
def test_penalty_is_weight_decay_for_sgd() -> None:
    """S940 2.4, MF (8.23) = (8.24), with momentum too; and (1 − ηλ) w − ηg for the plain step."""
    x, y = torch.randn(8, 3, dtype=torch.float64), torch.randn(8, 2, dtype=torch.float64)
    models = {}
    for name, decay_rate, penalty in (("penalty", 0.0, 0.2), ("decay", 0.2, 0.0)):
        model = network()
        optimizer = SGD(lr=0.1, momentum=0.9, weight_decay=decay_rate).build(model)
        for _ in range(5):
            optimizer.zero_grad()
            ((model(x) - y).square().mean() + half_l2(weights(model), penalty)).backward()
            optimizer.step()
        models[name] = nn.utils.parameters_to_vector(model.parameters())
    close(models["penalty"], models["decay"])
    layer = nn.Linear(3, 2).double()
    before = layer.weight.detach().clone()
    layer(x).square().sum().backward()
    SGD(lr=0.1, momentum=0.0, weight_decay=0.2).build(layer).step()
    close(layer.weight, decay(before, 0.1, 0.2) - 0.1 * layer.weight.grad)


@pytest.mark.system("l2-weight-decay")
@pytest.mark.system("l2-weight-decay", "weights-only")
@pytest.mark.parametrize("rule", [SGD(lr=0.1, momentum=0.0, weight_decay=0.3), AdamW(lr=0.1, weight_decay=0.3)])
def test_without_gradient_weights_shrink_and_biases_stay(rule: SGD | AdamW) -> None:
    """VOM-B.142: by 1 − ηλ at every step."""
    model = nn.Linear(3, 2)
    w, b = model.weight.detach().clone(), model.bias.detach().clone()
    optimizer = rule.build(model)
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    for _ in range(4):
        optimizer.step()
    close(model.weight, w * (1 - 0.1 * 0.3) ** 4)
    assert torch.equal(model.bias, b)


@pytest.mark.system("l2-weight-decay")
@pytest.mark.system("l2-weight-decay", "decay")
def test_adam_with_the_penalty_is_not_adamw() -> None:
    ends = []
    for decay_rate, penalty in ((0.0, 0.2), (0.2, 0.0)):
        model = nn.Linear(3, 1).double()
        nn.init.constant_(model.weight, 1.0)
        optimizer = AdamW(lr=0.1, weight_decay=decay_rate).build(model)
        (model(torch.eye(3, dtype=torch.float64)).sum() + half_l2(weights(model), penalty)).backward()
        optimizer.step()
        ends.append(model.weight.detach())
    assert (ends[0] - ends[1]).abs().max() > 1e-3


@pytest.mark.system("l2-weight-decay")
@pytest.mark.system("l2-weight-decay", "map")
@pytest.mark.system("ridge-regression")
def test_map_estimate_is_ridge() -> None:
    """MF-A.36: −log p(y | X, w) − log p(w) by L-BFGS, noise of variance 1, prior of variance τ²."""
    (x, y), tau = data(), 0.6
    w = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([w], max_iter=200, tolerance_grad=1e-12, tolerance_change=1e-14)
    likelihood = torch.distributions.Normal(0.0, 1.0)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = -likelihood.log_prob(y - x @ w).sum() + gaussian_prior([w], tau)
        loss.backward()
        return loss

    optimizer.step(closure)
    close(w, ridge(x, y, 1 / tau**2), loosen=1e3)  # the accuracy of L-BFGS
    close(ridge_of_half_mean_square(x, y, decay_of_prior(tau, len(x))), ridge(x, y, 1 / tau**2))


@pytest.mark.system("l2-weight-decay")
@pytest.mark.system("l2-weight-decay", "map")
def test_prior_is_the_density_of_torch() -> None:
    w = torch.randn(3, 4, dtype=torch.float64)
    close(
        gaussian_prior([w], 0.4),
        -torch.distributions.Normal(0.0, torch.tensor(0.4, dtype=torch.float64)).log_prob(w).sum(),
    )
    assert math.isclose(decay_of_prior(0.5, 100), 0.04)


@pytest.mark.system("l2-weight-decay")
@pytest.mark.system("l2-weight-decay", "sweep")
def test_a_larger_lambda_makes_smaller_weights_and_a_worse_fit() -> None:
    x, y = data()
    fits = [ridge(x, y, lam) for lam in (0.0, 0.1, 1.0, 10.0, 1000.0)]
    norms, errors = [float(w.norm()) for w in fits], [float((x @ w - y).square().sum()) for w in fits]
    assert norms == sorted(norms, reverse=True)
    assert errors == sorted(errors)


@pytest.mark.system("l1-penalty")
@pytest.mark.system("l1-penalty", "share-of-zeros")
def test_share_of_zeros() -> None:
    assert zero_share([torch.tensor([[0.0, 1.0]]), torch.tensor([[0.0, 0.0], [-0.0, 1e-30]])]) == 4 / 6
