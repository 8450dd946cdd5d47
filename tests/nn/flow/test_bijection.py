"""Change of variables, composition, linear flows."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.stats import lognorm
from torch import Tensor

from descend.errors import Mistake
from descend.nn.flow.bijection import Bijection, Chain, Inverse, Moved, Reverse, standard_normal
from descend.nn.flow.coupling import Conditioner, Coupling
from descend.nn.flow.linear import ElementwiseAffine, LinearFlow, fit_linear, fold_linear
from descend.nn.flow.transforms import Affine
from tests.close import close
from tests.nn.flow.jacobians import DOUBLE, check_layer, integrate, jacobian, points, shake

pytestmark = pytest.mark.system("normalizing-flow")


class Exponential(Bijection):
    """x = e^z"""

    def forward(self, z: Tensor) -> Moved:
        return z.exp(), z.sum(1)

    def inverse(self, x: Tensor) -> Moved:
        return x.log(), -x.log().sum(1)


def coupling(first: bool = True) -> Coupling:
    kept = range(1) if first else range(1, 3)
    return Coupling(3, kept, Conditioner(len(kept), 3 - len(kept), 2, 8, 1), Affine())


@pytest.mark.system("normalizing-flow", "formula")
def test_the_density_of_an_exponential_is_log_normal() -> None:
    x = torch.tensor([[1.7], [0.3], [5.0]], dtype=DOUBLE)
    z, log_det = Exponential().inverse(x)
    p = (standard_normal(z) + log_det).exp()
    close(p[:1], torch.tensor([0.2038542595]))
    close(p, torch.tensor(lognorm.pdf(x[:, 0].numpy(), s=1)))


@pytest.mark.system("normalizing-flow", "composition")
def test_log_determinants_add_up_each_at_its_own_input() -> None:
    """Three layers: inverses in reversed order, the sum equal to autograd's; at x itself the sum would be another."""
    layers: list[Bijection] = [shake(coupling()), Reverse(), shake(coupling(first=False))]
    flow, z = Chain(layers), points(5, 3)
    check_layer(flow, z)
    x, _ = flow(z)
    by_hand, total = x, torch.zeros(5, dtype=DOUBLE)
    for layer in reversed(layers):
        by_hand, log_det = layer.inverse(by_hand)
        total = total + log_det
    close(flow.inverse(x)[0], by_hand)
    close(flow.inverse(x)[1], total)
    at_x = torch.stack([layer.inverse(x)[1] for layer in layers]).sum(0)
    assert (at_x - total).abs().max() > 0.1
    first, second, third = layers
    middle = first(z)[0]
    product = jacobian(third, second(middle)[0]) @ jacobian(second, middle) @ jacobian(first, z)
    close(torch.linalg.slogdet(product).logabsdet, flow(z)[1])


@pytest.mark.system("normalizing-flow", "linear")
def test_a_stack_of_linear_layers_is_one_affine_map() -> None:
    """The books' −6 z − 2.5; and matrices. A Gaussian stays a Gaussian: its covariance is W Wᵀ."""
    first, second = ElementwiseAffine(1), ElementwiseAffine(1)
    with torch.no_grad():
        for layer, (scale, shift) in zip((first, second), ((2.0, 1.0), (-3.0, 0.5)), strict=True):
            layer.a.fill_(scale)
            layer.b.fill_(shift)
    w, b = fold_linear([first, second], 1)
    assert (w.item(), b.item()) == (-6.0, -2.5)
    torch.manual_seed(0)
    layers: list[ElementwiseAffine | LinearFlow] = [
        LinearFlow(3).double(),
        ElementwiseAffine(3).double(),
        LinearFlow(3).double(),
    ]
    with torch.no_grad():
        for linear in layers:
            linear.b.copy_(points(1, 3, seed=7)[0])
    flow, z = Chain(layers), points(6, 3)
    w, b = fold_linear(layers, 3)
    close(flow(z)[0], z @ w.T + b)
    x = flow(z)[0]
    z, log_det = flow.inverse(x)
    gaussian = torch.distributions.MultivariateNormal(b, w @ w.T)
    close(standard_normal(z) + log_det, gaussian.log_prob(x))


LAYERS = [ElementwiseAffine(4), LinearFlow(4), coupling(), Reverse()]


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: type(layer).__name__)
def test_layers_go_both_ways(layer: Bijection) -> None:
    layer = layer.double()
    if not isinstance(layer, LinearFlow):
        layer = shake(layer)
    size = 3 if isinstance(layer, Coupling) else 4
    check_layer(layer, points(5, size))
    check_layer(Inverse(layer), points(5, size))


@pytest.mark.system("normalizing-flow", "linear")
def test_the_likeliest_linear_flow_has_the_datas_moments() -> None:
    x = points(500, 3) @ points(3, 3, seed=3) + 2
    flow = fit_linear(x)
    cov = torch.cov(x.T, correction=0)
    z, log_det = flow.inverse(x)
    close(flow.matrix() @ flow.matrix().T, cov)
    close(z.mean(0) + 1, torch.ones(3, dtype=DOUBLE))
    close(standard_normal(z) + log_det, torch.distributions.MultivariateNormal(x.mean(0), cov).log_prob(x))


@pytest.mark.system("normalizing-flow", "density")
def test_the_density_integrates_to_one() -> None:
    layers = (Coupling(2, kept, Conditioner(1, 1, 2, 8, 1), Affine(1.0)) for kept in (range(1), range(1, 2), range(1)))
    flow = Chain([shake(layer, 0.7) for layer in layers])

    def log_prob(x: Tensor) -> Tensor:
        z, log_det = flow.inverse(x)
        return standard_normal(z) + log_det

    assert abs(integrate(log_prob, box=12.0, cells=500) - 1) < 1e-3


@pytest.mark.system("normalizing-flow", "named-layer")
def test_what_cannot_be_inverted_is_named_by_its_layer() -> None:
    flow = Chain([coupling(), coupling(), coupling(first=False)])
    with torch.no_grad():
        flow.layers[1].conditioner.layers[-1].bias.fill_(math.inf)  # type: ignore[union-attr,index]
    x = torch.zeros(4, 3)
    with pytest.raises(Mistake, match=r"layer 2 of 3 \(Coupling\) makes NaN or infinity of point 0"):
        flow.check(x)
    x[2, 1] = math.nan
    with pytest.raises(Mistake, match="point 2 has a NaN or an infinity"):
        flow.check(x)
    Chain([coupling()]).check(torch.zeros(4, 3))


def test_stages_are_the_outputs_of_the_layers() -> None:
    flow, z = Chain([shake(coupling()), Reverse()]), points(4, 3)
    noise, middle, end = flow.stages(z)
    assert torch.equal(noise, z)
    close(middle, flow.layers[0](z)[0])
    close(end, flow(z)[0])


@pytest.mark.system("realnvp", "erratum")
def test_the_squared_norm_is_a_number() -> None:
    """DLN-RealNVP-batch-loss prints −½ f⁻¹(x), a vector."""
    z = torch.tensor([[-0.5382166956, 0.5879932086, 1.321807902, 0.1231027041, -0.567828931]], dtype=DOUBLE)
    close(standard_normal(z), torch.tensor([-1.360086663 - 4.594692666]))
    close(standard_normal(z), torch.distributions.Normal(0, 1).log_prob(z).sum(1))
