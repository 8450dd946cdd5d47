from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy import special, stats
from torch import Tensor
from torch.nn import functional as F

from descend.metrics.units import slope
from descend.ops import activations as ops
from tests.close import close


def t(values: object) -> Tensor:
    return torch.as_tensor(values, dtype=torch.float64)


X = t([-30.0, -9.0, -4.0, -2.0, -1.0, -0.5, -1e-3, 1e-3, 0.5, 1.0, 2.0, 4.0, 9.0, 30.0])
N = X.numpy()


@pytest.mark.system("activation-registry")
@pytest.mark.system("sigmoid")
@pytest.mark.system("tanh")
@pytest.mark.system("softplus")
@pytest.mark.system("relu")
@pytest.mark.system("leaky-relu")
@pytest.mark.system("elu")
@pytest.mark.system("silu-swish")
@pytest.mark.parametrize(
    ("f", "theirs"),
    [
        (ops.sigmoid, special.expit(N)),
        (ops.tanh, np.tanh(N)),
        (ops.softplus, np.logaddexp(0, N)),
        (ops.relu, np.maximum(0, N)),
        (ops.leaky_relu, np.maximum(N, 0.01 * N)),
        (ops.elu, np.where(N > 0, N, np.expm1(np.minimum(N, 0)))),
        (ops.gelu, N * stats.norm.cdf(N)),
        (ops.silu, N * special.expit(N)),
    ],
)
def test_values_agree_with_numpy_and_scipy(f: Callable[[Tensor], Tensor], theirs: np.ndarray) -> None:
    close(f(X), theirs)


PAIRS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "sigmoid": (ops.sigmoid, ops.sigmoid_slope),
    "tanh": (ops.tanh, ops.tanh_slope),
    "arctan": (torch.atan, ops.arctan_slope),
    "softplus": (ops.softplus, ops.sigmoid),
    "relu": (ops.relu, ops.relu_slope),
    "leaky": (ops.leaky_relu, ops.leaky_relu_slope),
    "elu": (lambda x: ops.elu(x, 1.7), lambda x: ops.elu_slope(x, 1.7)),
    "gelu": (ops.gelu, ops.gelu_slope),
    "silu": (ops.silu, ops.silu_slope),
}


@pytest.mark.system("activation-registry")
@pytest.mark.system("activation-registry", "table")
@pytest.mark.system("sigmoid")
@pytest.mark.system("tanh")
@pytest.mark.system("softplus")
@pytest.mark.system("softplus", "identity")
@pytest.mark.system("relu")
@pytest.mark.system("leaky-relu")
@pytest.mark.system("elu")
@pytest.mark.system("gelu")
@pytest.mark.system("silu-swish")
@pytest.mark.parametrize("name", list(PAIRS))
def test_slopes_in_closed_form_are_those_of_autograd(name: str) -> None:
    f, df = PAIRS[name]
    close(slope(f, X), df(X))
    assert torch.autograd.gradcheck(f, X[2:-2].clone().requires_grad_())


@pytest.mark.system("activation-registry")
@pytest.mark.system("activation-registry", "table")
def test_the_table_has_the_nine_of_dln() -> None:
    assert list(ops.TABLE) == [
        *("identity", "binary_step", "logistic", "tanh", "arctan", "relu", "prelu", "elu", "softplus")
    ]
    for name, (f, df) in ops.TABLE.items():
        close(slope(f, X) + 1, df(X) + 1)  # + 1, since those of the step are 0
        assert f(X).shape == X.shape, name


@pytest.mark.system("activation-registry")
@pytest.mark.system("activation-registry", "identity-collapse")
def test_linear_layers_collapse() -> None:
    a, b, x = (torch.randn(5, 5, generator=torch.Generator().manual_seed(i)).double() for i in range(3))
    close(ops.identity(b @ ops.identity(a @ x)), (b @ a) @ x)


@pytest.mark.system("step-and-threshold")
@pytest.mark.system("step-and-threshold", "at-zero")
def test_step_is_one_at_zero_and_stops_every_gradient() -> None:
    x = t([-2.0, -1e-300, -0.0, 0.0, 1e-300, 3.0, math.inf, -math.inf])
    assert ops.binary_step(x).tolist() == [0, 0, 1, 1, 1, 1, 1, 0]
    assert slope(ops.binary_step, x).tolist() == [0] * 8
    layer = torch.nn.Linear(3, 2)
    ops.binary_step(layer(torch.randn(4, 3))).sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.abs().max() == 0  # nothing below a step learns


@pytest.mark.system("step-and-threshold")
@pytest.mark.system("step-and-threshold", "perceptron")
def test_step_makes_a_perceptron() -> None:
    x = t([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    assert ops.binary_step(x @ t([1.0, 1.0]) - 1.5).tolist() == [0, 0, 0, 1]  # AND
    assert ops.binary_step(x @ t([1.0, 1.0]) - 1.0).tolist() == [0, 1, 1, 1]  # OR: exactly 0 counts as 1


@pytest.mark.system("step-and-threshold")
@pytest.mark.system("step-and-threshold", "threshold")
def test_threshold_is_strict() -> None:
    x = t([0.4, 0.5, 0.6])
    assert ops.threshold(x, 0.5, 7.0).tolist() == [7.0, 7.0, 0.6]
    close(ops.threshold(X, 0.5, 7.0), F.threshold(X, 0.5, 7.0))
    close(ops.threshold(X, 0.0, 0.0), ops.relu(X))


@pytest.mark.system("sigmoid")
@pytest.mark.system("sigmoid", "stable")
@pytest.mark.system("tanh")
@pytest.mark.system("softplus")
@pytest.mark.system("softplus", "stable")
@pytest.mark.system("silu-swish")
@pytest.mark.system("gelu")
@pytest.mark.system("elu")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_nothing_overflows_at_a_thousand(dtype: torch.dtype) -> None:
    x = torch.tensor([-1e4, -1000.0, 1000.0, 1e4], dtype=dtype)
    for f in (ops.sigmoid, ops.tanh, ops.softplus, ops.silu, ops.gelu, ops.elu, ops.leaky_relu, ops.gelu_tanh):
        assert f(x).isfinite().all()
        assert slope(f, x).isfinite().all(), f.__name__
    assert ops.sigmoid(x).tolist() == [0, 0, 1, 1]
    assert ops.softplus(x).tolist() == [0, 0, 1000, 1e4]


@pytest.mark.system("sigmoid")
@pytest.mark.system("sigmoid", "slope", "symmetry")
def test_sigmoid_properties() -> None:
    close(ops.sigmoid(-X) + ops.sigmoid(X), torch.ones_like(X))
    grid = torch.arange(-500, 501, dtype=torch.float64) / 100
    assert ops.sigmoid_slope(grid).max() == 0.25
    assert grid[ops.sigmoid_slope(grid).argmax()] == 0
    close(ops.sigmoid(t([0.18, 0.2, 0.03, 0.02])).round(decimals=3), t([0.545, 0.55, 0.507, 0.505]))  # VOM-A.21


@pytest.mark.system("tanh")
@pytest.mark.system("tanh", "forms", "slope")
def test_tanh_forms_and_greatest_slope() -> None:
    """MF-B.9 prints 1/4 for the greatest slope; it is 1."""
    close(ops.tanh_by_exponentials(X), ops.tanh(X))
    close(ops.tanh_by_sigmoid(X), ops.tanh(X))
    assert ops.tanh_slope(t(0.0)) == 1
    assert (ops.tanh_slope(X) < 1).all()
    close(ops.tanh(t([0.3, 0.4])).round(decimals=3), t([0.291, 0.380]))  # VOM-A.22


@pytest.mark.system("softplus")
@pytest.mark.system("softplus", "stable", "identity")
def test_softplus_is_exact_where_torch_is_not() -> None:
    close(ops.softplus(X) - ops.softplus(-X), X)
    x = t([21.0])
    assert (F.softplus(x) - x).item() == 0  # torch: a straight line above 20
    close((ops.softplus(x) - x) * 1e9, np.log1p(np.exp(-x.numpy())) * 1e9, loosen=1e4)  # of a difference of 1e-9
    close(ops.softplus(X[:-1]), F.softplus(X[:-1]), loosen=3)  # 2e-9 at most


@pytest.mark.system("relu")
@pytest.mark.system("relu", "at-zero")
@pytest.mark.parametrize("at_zero", [0.0, 0.5, 1.0])
def test_relu_has_the_chosen_slope_at_zero(at_zero: float) -> None:
    x = t([-1.0, 0.0, 2.0])
    assert slope(lambda x: ops.relu(x, at_zero), x).tolist() == [0, at_zero, 1]
    assert ops.relu_slope(x, at_zero).tolist() == [0, at_zero, 1]
    assert ops.relu(x, at_zero).tolist() == [0, 0, 2]
    assert ops.relu(t([math.inf, -math.inf]), at_zero).tolist() == [math.inf, 0]


@pytest.mark.system("relu")
@pytest.mark.system("relu", "homogeneous")
def test_relu_properties() -> None:
    close(ops.relu(3 * X), 3 * ops.relu(X))  # positive homogeneity
    assert ops.relu(t(-1.0)) + ops.relu(t(1.0)) != ops.relu(t(0.0))  # additivity fails
    assert slope(ops.relu, t([0.0])).item() == slope(torch.relu, t([0.0])).item() == 0


@pytest.mark.system("leaky-relu")
@pytest.mark.system("leaky-relu", "slope", "negative-gradient")
@pytest.mark.system("prelu")
def test_leaky_slope() -> None:
    close(ops.leaky_relu(X, 0.2), F.leaky_relu(X, 0.2))
    close(ops.leaky_relu(X, 0.0), ops.relu(X))
    close(ops.leaky_relu(X, 1.0), X)
    assert set(slope(lambda x: ops.leaky_relu(x, 0.3), X[X < 0]).tolist()) == {0.3}


@pytest.mark.system("prelu")
@pytest.mark.system("prelu", "shared-or-per-channel")
def test_prelu_slopes_are_learned_per_channel() -> None:
    """∂L/∂a_c = Σ over the negative inputs of channel c of upstream · x."""
    random = torch.Generator().manual_seed(0)
    x, upstream = (torch.randn(4, 3, 2, 2, generator=random).double() for _ in range(2))
    a = t([0.1, 0.25, -0.3]).requires_grad_()
    y = ops.leaky_relu(x, a.view(3, 1, 1))
    close(y, F.prelu(x, a))
    (found,) = torch.autograd.grad(y, a, upstream)
    close(found, (upstream * x * (x < 0)).sum((0, 2, 3)))
    shared = t(0.25).requires_grad_()
    (found,) = torch.autograd.grad(ops.leaky_relu(x, shared), shared, upstream)
    close(found, (upstream * x)[x < 0].sum())


@pytest.mark.system("rrelu")
@pytest.mark.system("rrelu", "training", "testing")
def test_rrelu_draws_slopes_uniformly_and_takes_their_mean_in_tests() -> None:
    low, high, random = 0.125, 1 / 3, torch.Generator().manual_seed(0)
    x = t([-2.0, 3.0]).repeat(20_000, 1)
    y = ops.rrelu(x, low, high, random)
    slopes = (y / x)[:, 0].numpy()
    assert (y[:, 1] == 3).all()
    assert stats.kstest(slopes, stats.uniform(low, high - low).cdf).pvalue > 0.01
    close(ops.rrelu_test(x, low, high), F.rrelu(x, low, high, training=False))
    module = torch.nn.RReLU(low, high)
    drawn = (module(x) / x)[:, 0]
    assert low <= drawn.min() < drawn.max() <= high
    assert len(set(drawn[:100].tolist())) > 90  # a slope for every number anew


@pytest.mark.system("elu")
@pytest.mark.system("elu", "alpha", "erratum")
def test_elu_is_smooth_for_alpha_one_only() -> None:
    """DLN calls it differentiable everywhere: the one-sided slopes at 0 are α and 1."""
    below, above = t(-1e-12), t(1e-12)
    for alpha in (0.5, 1.0, 2.0):
        close(ops.elu_slope(below, alpha), t(alpha))
        close(ops.elu_slope(above, alpha), t(1.0))
        close(ops.elu(t(-50.0), alpha), t(-alpha))
        close(ops.elu(X, alpha), F.elu(X, alpha))
        close(slope(lambda x: ops.elu(x, alpha), X), slope(lambda x: F.elu(x, alpha), X))


@pytest.mark.system("gelu")
@pytest.mark.system("gelu", "exact", "tanh-form", "identity")
def test_gelu_forms() -> None:
    close(ops.gelu(X), F.gelu(X))
    close(ops.gelu_tanh(X), F.gelu(X, approximate="tanh"))
    close(ops.gelu(X) - ops.gelu(-X), X)
    close(ops.gelu_slope(X), stats.norm.cdf(N) + N * stats.norm.pdf(N))
    assert ops.gelu(t(0.0)) == 0
    far = t(-20.0)
    close(ops.gelu(far) / stats.norm.cdf(-20), t(-20.0))  # F.gelu gives 0 here
    assert F.gelu(far) == 0
    grid = torch.linspace(-8, 8, 160_001, dtype=torch.float64)
    gap, at = (ops.gelu(grid) - ops.gelu_tanh(grid)).abs().max(dim=0)
    close(gap, t(4.7324e-4), loosen=1e5)  # printed with five digits
    close(grid[at].abs(), t(2.699), loosen=1e5)


@pytest.mark.system("silu-swish")
@pytest.mark.system("silu-swish", "minimum")
def test_silu_minimum() -> None:
    close(ops.silu(X), F.silu(X))
    assert ops.silu_slope(t(-1.2784645428)).abs() < 1e-9
    close(ops.silu(t(-1.2784645428)), t(-0.2784645428))
    assert slope(ops.silu, t([-2.0])) < 0 < slope(ops.silu, t([-1.0]))  # not monotonic


@pytest.mark.system("silu-swish", "timed-against-gelu")
def test_silu_takes_less_time_than_gelu(record_property: Callable[[str, object], None]) -> None:
    """DLN-A.45: an exponential instead of erf. Ours and torch's kernels, the best of 15 runs on 65 536 numbers."""
    x, took = torch.randn(1 << 16, generator=torch.Generator().manual_seed(0)), {}
    for name, f in {"silu": ops.silu, "gelu": ops.gelu, "torch silu": F.silu, "torch gelu": F.gelu}.items():
        times = []
        for _ in range(15):
            began = time.perf_counter()
            f(x)
            times.append(time.perf_counter() - began)
        took[name] = min(times)
    record_property("silu over gelu", took["silu"] / took["gelu"])
    record_property("silu over gelu, torch", took["torch silu"] / took["torch gelu"])
    assert took["silu"] < took["gelu"]
    assert took["torch silu"] < 1.5 * took["torch gelu"]
