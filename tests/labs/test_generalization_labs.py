"""The labs of generalization: what they are made of, in little, and numbers that refute them."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn

from descend.catalog.systems import entries
from descend.labs import (
    approximation_rates,
    bias_variance,
    depth_and_structure,
    double_descent,
    error_surface,
    flat_minima,
    generalization_gap,
    gradients_in_depth,
    overfitting_and_capacity,
    parity_networks,
    residual_landscape,
    simplicity_bias,
    symmetry_and_samples,
    wide_networks,
)
from descend.labs._evidence import NeedsMore, judge_seed
from descend.labs._side_by_side import Copies, fit_copies
from descend.labs._trials import buy_trials
from descend.nn.noise import GaussianNoise, NoisyWeights
from descend.theory.generalization.depth import list_bits, shallow_parity
from tests.close import close

LABS = (
    approximation_rates,
    bias_variance,
    depth_and_structure,
    double_descent,
    error_surface,
    flat_minima,
    generalization_gap,
    gradients_in_depth,
    overfitting_and_capacity,
    parity_networks,
    residual_landscape,
    simplicity_bias,
    symmetry_and_samples,
    wide_networks,
)
FAST = (error_surface, generalization_gap, bias_variance, simplicity_bias, gradients_in_depth, approximation_rates)


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.__name__.rpartition(".")[2])
def test_a_lab_states_what_it_tests(lab: ModuleType) -> None:
    known = entries()
    assert lab.ENTRIES
    assert all(entry in known for entry in lab.ENTRIES)
    for said in (lab.PRINTED, lab.CLAIM, lab.SCOPE):
        assert len(said) > 30
    assert all(prediction.note for prediction in lab.PREDICTIONS)
    with pytest.raises(NeedsMore):
        lab.measure(0, 1e-3)


@pytest.mark.parametrize("lab", FAST, ids=lambda lab: lab.__name__.rpartition(".")[2])
def test_measured_in_little(lab: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few trials on a seed that is not recorded: JSON, an effect for each prediction, a figure."""
    monkeypatch.setattr(lab, "LEAST", 1)
    few = {"generalization_gap": 0.04, "bias_variance": 0.04, "simplicity_bias": 0.1, "error_surface": 1.0}
    numbers = lab.measure(5, few.get(lab.__name__.rpartition(".")[2], 0.5))
    json.dumps(numbers)
    assert judge_seed(lab, numbers) in ("supported", "refuted", "open")
    assert lab.figure(numbers).axes


CHANGES = [
    (error_surface, {"steps": lambda v: [40] * len(v)}),
    (bias_variance, {"error": lambda v: [1.0] * len(v)}),
    (generalization_gap, {"population": lambda v: [2 * one for one in v]}),
    (simplicity_bias, {"rank_correlation": lambda v: 0.1}),
    (gradients_in_depth, {"slope": lambda v: [0.0] * len(v)}),
    (approximation_rates, {"smooth_d8": lambda v: [1.0] * len(v)}),
]


@pytest.mark.parametrize(("lab", "change"), CHANGES, ids=lambda v: getattr(v, "__name__", ""))
def test_other_numbers_refute(lab: ModuleType, change: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "LEAST", 1)
    numbers = lab.measure(5, 1.0 if lab is error_surface else 0.5)
    doctored = {**numbers, **{key: f(numbers[key]) for key, f in change.items()}}
    assert judge_seed(lab, doctored) == "refuted"


def test_trials() -> None:
    assert buy_trials(2.0, 5, 3) == 10
    with pytest.raises(NeedsMore) as raised:
        buy_trials(0.1, 5, 3)
    assert raised.value.seconds == pytest.approx(0.6)


def test_copies_are_networks_of_their_own() -> None:
    """A copy's output is that of nn.Linear with its weights, and training one does not touch another."""
    net = Copies(3, (2, 5, 1), torch.tanh, torch.Generator().manual_seed(0))
    x = torch.randn(3, 7, 2, generator=torch.Generator().manual_seed(1))
    for c in range(3):
        layers = nn.Linear(2, 5), nn.Linear(5, 1)
        one = nn.Sequential(layers[0], nn.Tanh(), layers[1])
        with torch.no_grad():
            for layer, w, b in zip(layers, net.weights, net.biases, strict=True):
                layer.weight.copy_(w[c].T)
                layer.bias.copy_(b[c, 0])
        close(net(x)[c], one(x[c]))
    before = [w.detach().clone() for w in net.weights]
    fit_copies(net, lambda: net(x)[:2].square().mean((1, 2)).sum(), 20, 0.01)
    assert all(
        torch.equal(a[2], b[2]) and not torch.equal(a[0], b[0]) for a, b in zip(before, net.weights, strict=True)
    )


@pytest.mark.system("symmetry-and-sample-efficiency")
@pytest.mark.system("symmetry-and-sample-efficiency", "invariant")
def test_the_invariant_models_are_invariant() -> None:
    """Under every permutation of a set, and every shift of a ring; the unconstrained ones are not."""
    torch.manual_seed(0)
    x = torch.randn(4, symmetry_and_samples.SET)
    summed, free = symmetry_and_samples.Summed(), symmetry_and_samples.Free(symmetry_and_samples.SET, 8, 1)
    order = torch.randperm(symmetry_and_samples.SET)
    close(summed(x[:, order]), summed(x))
    assert not torch.allclose(free(x[:, order]), free(x))
    x = torch.randn(4, symmetry_and_samples.RING)
    shifted, free = symmetry_and_samples.Shifted(), symmetry_and_samples.Free(symmetry_and_samples.RING, 8, 3)
    for places in (1, 5, 9):
        close(shifted(x.roll(places, -1)), shifted(x))
        assert not torch.allclose(free(x.roll(places, -1)), free(x))
    counts = {
        "examples": [8, 16, 32],
        "sets_invariant": [0.3, 0.05, 0.01],
        "sets_unconstrained": [0.3, 0.2, 0.2],
    }
    assert symmetry_and_samples.count_needed(counts, "sets", "invariant") == 16
    assert symmetry_and_samples.count_needed(counts, "sets", "unconstrained") == 64


@pytest.mark.system("gradient-noise-flat-minima")
@pytest.mark.system("gradient-noise-flat-minima", "unstable")
def test_a_minimum_sharper_than_two_over_the_rate_is_left() -> None:
    """Exactly: the distance from it is multiplied by |1 − η c| in every step."""
    for share, gone in ((0.5, False), (0.999, False), (1.001, False), (1.02, True), (1.5, True)):
        assert flat_minima.left(share) == float(gone)  # 1.001 needs longer: |1 − 2.002|^1000 = 7.4 from a thousandth
    curvature, rate = 3.0, 0.7
    theta = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([theta], rate)
    for step in range(1, 6):
        optimizer.zero_grad()
        (curvature / 2 * theta**2).backward()
        optimizer.step()
        assert float(theta.detach()) == pytest.approx((1 - rate * curvature) ** step)


@pytest.mark.system("gradient-noise-flat-minima")
def test_sharpness_is_the_largest_eigenvalue() -> None:
    from descend.autodiff.hessian import hessian

    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 1)).double()
    x, y = torch.randn(20, 3).double(), torch.randn(20, 1).double()
    shapes = [p.shape for p in net.parameters()]

    def loss(theta: torch.Tensor) -> torch.Tensor:
        parts = theta.split([s.numel() for s in shapes])
        named = {k: v.view(s) for (k, _), v, s in zip(net.named_parameters(), parts, shapes, strict=True)}
        return (torch.func.functional_call(net, named, (x,)) - y).square().sum(-1).mean()

    h = hessian(loss, torch.cat([p.detach().flatten() for p in net.parameters()]))
    assert flat_minima.sharpness(net, x, y) == pytest.approx(float(torch.linalg.eigvalsh(h).abs().max()), rel=1e-3)


@pytest.mark.system("overfitting-and-capacity")
@pytest.mark.system("overfitting-and-capacity", "noise-options")
def test_noise_on_weights_and_activities_fits_any_network() -> None:
    """In training a linear unit's output has the variance that the noise says; in evaluation there is none."""
    torch.manual_seed(0)
    unit = nn.Linear(3, 1).double()
    x = torch.tensor([[1.0, -2.0, 0.5]], dtype=torch.float64)
    shaken, noisy = nn.Sequential(unit, GaussianNoise(0.3)).train(), NoisyWeights(unit, 0.2).train()
    for net, deviation in ((shaken, 0.3), (noisy, 0.2 * float(x.norm()))):
        drawn = torch.stack([net(x).detach() for _ in range(4000)])
        assert float(drawn.std()) == pytest.approx(deviation, rel=0.06)
        assert float(drawn.mean()) == pytest.approx(unit(x).item(), abs=4 * deviation / 4000**0.5)
        close(net.eval()(x), unit(x))


@pytest.mark.system("depth-versus-width", "shallow")
def test_what_is_trained_is_what_is_built() -> None:
    """The eight units of `shallow_parity` are a network of the shape that the lab trains, and exact there."""
    net = Copies(1, (8, 8, 1), torch.relu, torch.Generator().manual_seed(0)).double()
    k = torch.arange(8.0, dtype=torch.float64)
    out = 2 * (-1) ** k
    out[0] = 1
    with torch.no_grad():
        net.weights[0].fill_(1.0)
        net.biases[0].copy_(-k.view(1, 1, 8))
        net.weights[1].copy_(out.view(1, 8, 1))
        net.biases[1].zero_()
    bits = list_bits(8)
    close(net(bits[None])[0, :, 0], shallow_parity(bits))
    random = torch.Generator().manual_seed(0)
    tree = parity_networks.Tree(2, random)
    assert tree(bits.float().expand(2, -1, -1)).shape == (2, 256, 1)
    assert depth_and_structure.Tree(2, random)(torch.randn(2, 5, 8)).shape == (2, 5, 1)


@pytest.mark.system("double-descent")
def test_the_peak_is_where_features_equal_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three datasets, without the networks: the recorded verdict has them and more."""
    monkeypatch.setattr(double_descent, "LEAST", 1)
    monkeypatch.setattr(double_descent, "WIDTHS", (1, 2, 4))
    monkeypatch.setattr(double_descent, "STEPS", 2)
    found = double_descent.effects(double_descent.measure(5, 5.0))
    assert found["peak_at"] == 1
    assert found["interpolated"] < 1e-9
    assert found["ridge"] < 0.2
