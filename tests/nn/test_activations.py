from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import special, stats
from torch import Tensor, nn
from torch.nn import functional as F

from descend.errors import Mistake
from descend.metrics.units import slope
from descend.nn.activations import ACTIVATIONS, ReLU, activation, learned_slopes
from descend.nn.init import initialize, uniform_, xavier
from descend.ops.activations import binary_step
from tests.close import close

X = torch.tensor([-9.0, -4.0, -2.0, -1.2, -0.6, -0.4, -1e-3, 1e-3, 0.4, 0.6, 1.5, 4.0, 9.0], dtype=torch.float64)
N = X.numpy()
LAMBDA, ALPHA = 1.0507009873554805, 1.6732632423543772  # of SELU

EQUATIONS = {
    "identity": N,
    "binary-step": np.heaviside(N, 1.0),
    "threshold": np.where(N > 0, N, 0.0),
    "sigmoid": special.expit(N),
    "tanh": np.tanh(N),
    "arctan": np.arctan(N),
    "softplus": np.log1p(np.exp(N)),
    "relu": np.maximum(N, 0),
    "relu-one-at-zero": np.maximum(N, 0),
    "leaky-relu": np.where(N > 0, N, 0.01 * N),
    "prelu": np.where(N > 0, N, 0.25 * N),
    "rrelu": np.where(N > 0, N, (1 / 8 + 1 / 3) / 2 * N),
    "elu": np.where(N > 0, N, np.expm1(N)),
    "gelu": N * stats.norm.cdf(N),
    "gelu-tanh": N / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (N + 0.044715 * N**3))),
    "silu": N / (1 + np.exp(-N)),
    "softmax": special.softmax(N),
    "softmin": special.softmax(-N),
    "log-softmax": special.log_softmax(N),
    "hardtanh": np.clip(N, -1, 1),
    "celu": np.maximum(0, N) + np.minimum(0, np.expm1(N)),
    "selu": LAMBDA * np.where(N > 0, N, ALPHA * np.expm1(N)),
    "relu6": np.clip(N, 0, 6),
    "softsign": N / (1 + np.abs(N)),
    "tanhshrink": N - np.tanh(N),
    "hardshrink": np.where(np.abs(N) > 0.5, N, 0.0),
    "softshrink": np.sign(N) * np.maximum(np.abs(N) - 0.5, 0),
    "log-sigmoid": -np.log1p(np.exp(-N)),
}


@pytest.mark.system("gelu", "selectable")
@pytest.mark.system("activation-registry")
@pytest.mark.system("activation-registry", "further")
@pytest.mark.system("step-and-threshold")
@pytest.mark.system("leaky-relu")
@pytest.mark.system("prelu")
@pytest.mark.system("rrelu")
@pytest.mark.system("silu-swish")
@pytest.mark.system("silu-swish", "module")
@pytest.mark.system("softmax")
@pytest.mark.parametrize("name", list(ACTIVATIONS))
def test_every_name_is_the_equation(name: str) -> None:
    """In use, with the constants of the table; written once more in numpy and scipy."""
    close(activation(name).double().eval()(X), EQUATIONS[name])


@pytest.mark.system("activation-registry")
@pytest.mark.system("activation-registry", "further")
@pytest.mark.parametrize("name", [n for n in ACTIVATIONS if n != "rrelu"])
def test_gradcheck(name: str) -> None:
    assert torch.autograd.gradcheck(activation(name).double().requires_grad_(False), X.clone().requires_grad_())


@pytest.mark.system("activation-registry")
def test_celu_mends_the_kink_of_elu() -> None:
    """DLN: CELU reparametrizes ELU; its slopes at 0 meet for every α."""
    left, right = torch.tensor([-1e-9]).double(), torch.tensor([1e-9]).double()
    celu, elu = nn.CELU(2.0), nn.ELU(2.0)
    close(slope(celu, left), slope(celu, right), loosen=10)
    close(slope(elu, left), 2 * slope(elu, right), loosen=10)


@pytest.mark.system("relu")
@pytest.mark.system("relu", "at-zero")
def test_relu_module_has_slope_one_at_zero() -> None:
    zero = torch.zeros(1)
    assert slope(ReLU(), zero) == 1
    assert slope(ReLU(0.5), zero) == 0.5
    assert slope(nn.ReLU(), zero) == 0
    with pytest.raises(ValueError, match="not a slope of ReLU at 0"):
        ReLU(1.5)


@pytest.mark.system("step-and-threshold")
@pytest.mark.system("step-and-threshold", "at-zero")
def test_step_in_a_net_gives_zero_gradients() -> None:
    net = nn.Sequential(nn.Linear(3, 4), activation("binary-step"), nn.Linear(4, 1))
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    net(x).sum().backward()
    below, above = net[0].weight.grad, net[2].weight.grad
    assert below.abs().max() == 0
    close(above[0], binary_step(net[0](x)).sum(0))


@pytest.mark.system("prelu")
@pytest.mark.system("prelu", "reported")
def test_learned_slopes_are_reported_by_layer() -> None:
    net = nn.Sequential(nn.Linear(4, 3), nn.PReLU(3), nn.Linear(3, 2), nn.PReLU())
    with torch.no_grad():
        net[1].weight.copy_(torch.tensor([0.1, 0.2, 0.3]))
    found = learned_slopes(net)
    assert list(found) == ["1", "3"]
    close(found["1"], torch.tensor([0.1, 0.2, 0.3]))
    close(found["3"], torch.tensor([0.25]))


@pytest.mark.system("prelu")
@pytest.mark.system("prelu", "learned")
def test_prelu_learns_a_slope() -> None:
    """Data made with a slope of 0.7 below 0 are fitted with that slope."""
    x: Tensor = torch.linspace(-2, 2, 41)
    y = torch.where(x > 0, x, 0.7 * x)
    unit = nn.PReLU()
    for _ in range(60):
        (gradient,) = torch.autograd.grad((unit(x) - y).square().mean(), [unit.weight])
        with torch.no_grad():
            unit.weight.sub_(gradient, alpha=0.3)
    close(unit.weight, torch.tensor([0.7]))


@pytest.mark.system("rrelu")
@pytest.mark.system("rrelu", "testing")
def test_rrelu_has_two_modes() -> None:
    unit, x = nn.RReLU(0.1, 0.3), -torch.ones(2000)
    assert unit(x).std() > 0.01
    assert len(set(unit.eval()(x).tolist())) == 1
    close(unit(x)[0], torch.tensor(-0.2))


def test_a_misspelt_name_is_a_mistake() -> None:
    with pytest.raises(Mistake, match="Did you mean 'leaky-relu'"):
        activation("leaky_relu")
    assert set(EQUATIONS) == set(ACTIVATIONS)


def trained_loss(name: str, seed: int) -> float:
    """A 2-16-16-1 net on the sign of x₁ x₂, after 150 steps of plain gradient descent."""
    torch.manual_seed(seed)
    net = nn.Sequential(
        nn.Linear(2, 16), activation(name), nn.Linear(16, 16), activation(name), nn.Linear(16, 1), nn.Flatten(0)
    )
    initialize(net, xavier, uniform_)
    x = torch.randn(64, 2)
    y = (x.prod(1) > 0).float()
    for _ in range(150):
        loss = F.binary_cross_entropy_with_logits(net(x), y)
        net.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p in net.parameters():
                p.sub_(p.grad, alpha=0.5)  # type: ignore[arg-type]
    return loss.item()


@pytest.mark.system("tanh", "against-sigmoid")
def test_tanh_converges_faster_than_sigmoid_on_every_seed() -> None:
    """DLN-A.36: its outputs have mean 0 and four times the slope."""
    for seed in range(4):
        assert trained_loss("tanh", seed) < 0.6 * trained_loss("sigmoid", seed)


def gradient_left(name: str, gain: float, seed: int) -> float:
    """The gradient that reaches the input of 20 layers over that at their output; weights of deviation gain / √n."""
    random, n = torch.Generator().manual_seed(seed), 64
    x = torch.randn(32, n, generator=random).double().requires_grad_()
    a = x
    for _ in range(20):
        a = activation(name)(a @ (gain * torch.randn(n, n, generator=random) / n**0.5).double())
    g = torch.randn(a.shape, generator=random).double()
    return (torch.autograd.grad(a, x, g)[0].norm() / g.norm()).item()


@pytest.mark.system("relu", "depth")
def test_gradients_pass_through_relu_and_fade_in_saturating_units() -> None:
    """VOM-B.12: weights of variance 2/n keep the gradient of a ReLU net; at 1/n tanh loses it, sigmoid at once."""
    for seed in range(3):
        assert 0.3 < gradient_left("relu", 2**0.5, seed) < 3
        assert gradient_left("tanh", 1.0, seed) < 0.3
        assert gradient_left("sigmoid", 1.0, seed) < 1e-9
