"""Masked networks and autoregressive flows: what depends on what, passes, and zuko as the oracle."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import zuko  # type: ignore[import-untyped]
from torch import Tensor

from descend.nn.flow.autoregressive import InverseAutoregressive, MaskedAutoregressive, orders
from descend.nn.flow.bijection import Chain, Inverse
from descend.nn.flow.coupling import Coupling
from descend.nn.flow.made import MADE, make_masks
from descend.nn.flow.posterior import FlowPosterior
from descend.nn.flow.transforms import Affine, Spline, Transform
from tests.close import close
from tests.nn.flow.jacobians import DOUBLE, check_layer, jacobian, points, shake

ORDERS = [[1, 2, 3, 4], [4, 3, 2, 1], [2, 4, 1, 3]]


def network(degrees: list[int], numbers: int = 2, context: int = 0) -> MADE:
    return shake(MADE(degrees, numbers, width=24, depth=2, context=context))


def dependence(made: MADE, size: int) -> Tensor:
    """Which output variable depends on which input: the largest |∂| over the outputs of a variable and some points."""
    x = points(8, size)
    rows = torch.autograd.functional.jacobian(lambda x: made(x).sum(0), x)  # (D, numbers, b, D)
    return rows.abs().amax(dim=(1, 2))


@pytest.mark.system("masked-autoregressive-network")
@pytest.mark.system("masked-autoregressive-network", "triangular", "connected")
@pytest.mark.parametrize("numbers", [1, 3])
@pytest.mark.parametrize("order", ORDERS)
def test_each_output_sees_what_comes_before_it_and_all_of_that(order: list[int], numbers: int) -> None:
    """In the chosen order the Jacobian is strictly lower triangular, without another zero; the first is constant."""
    found = dependence(network(order, numbers), 4)
    place = torch.tensor(order).argsort()
    sorted_ = found[place][:, place]
    assert sorted_.triu().max() == 0
    assert (sorted_[torch.ones(4, 4, dtype=torch.bool).tril(-1)] > 0).all()
    assert found[order.index(1)].max() == 0


@pytest.mark.system("masked-autoregressive-network", "masks")
def test_masks_follow_the_degrees() -> None:
    """Three variables, hidden degrees 1, 2, 1, 2: m(k) ≥ m(j) inside, m(n) > m(k) at the output. Their product says
    which paths there are."""
    first, inner, last = make_masks([1, 2, 3], width=4, depth=2, numbers=1)
    assert first.int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 0, 0], [1, 1, 0]]
    assert inner.int().tolist() == [[1, 0, 1, 0], [1, 1, 1, 1], [1, 0, 1, 0], [1, 1, 1, 1]]
    assert last.int().tolist() == [[0, 0, 0, 0], [1, 0, 1, 0], [1, 1, 1, 1]]
    paths = last.int() @ inner.int() @ first.int()
    assert (paths > 0).tolist() == [[False] * 3, [True, False, False], [True, True, False]]
    (only,) = make_masks([1], width=2, depth=0, numbers=2)
    assert not only.any()


@pytest.mark.system("masked-autoregressive-flow")
@pytest.mark.system("masked-autoregressive-flow", "erratum", "inverse")
def test_the_jacobian_is_lower_triangular() -> None:
    """Rows z, columns x: DLN-MAF-triangular prints "upper". The log-determinant is that of the diagonal."""
    layer, x = MaskedAutoregressive(network([1, 2, 3, 4]), Affine()), points(5, 4)
    found = jacobian(layer, x, inverse=True)
    assert found.triu(1).abs().max() == 0
    assert found.tril(-1).abs().amin(0)[torch.ones(4, 4, dtype=torch.bool).tril(-1)].min() > 0
    close(layer.inverse(x)[1], found.diagonal(dim1=1, dim2=2).abs().log().sum(1))
    for order in ORDERS:
        check_layer(MaskedAutoregressive(network(order), Affine()), points(5, 4), loosen=10)
    assert orders(3, 3) == [[1, 2, 3], [3, 2, 1], [1, 2, 3]]


class Passes:
    """A network that counts how often it is asked."""

    def __init__(self, made: MADE):
        self.made, self.count, self.degrees = made, 0, made.degrees

    def __call__(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        self.count += 1
        found: Tensor = self.made(x, context)
        return found


@pytest.mark.system("masked-autoregressive-flow", "passes")
@pytest.mark.system("inverse-autoregressive-flow", "passes")
@pytest.mark.parametrize(("kind", "density", "sampling"), [(MaskedAutoregressive, 1, 4), (InverseAutoregressive, 4, 1)])
def test_passes_of_density_and_sampling(kind: Any, density: int, sampling: int) -> None:
    layer = kind(network([1, 2, 3, 4]), Affine())
    counted = Passes(layer.made)
    layer._modules.pop("made")
    layer.made = counted
    x, _ = layer(points(3, 4))
    assert counted.count == sampling
    z, _ = layer.inverse(x)
    assert counted.count == sampling + density
    close(z, points(3, 4), loosen=10)


@pytest.mark.system("inverse-autoregressive-flow")
@pytest.mark.system("inverse-autoregressive-flow", "exchanged")
def test_iaf_is_maf_with_x_and_z_exchanged() -> None:
    made = network([2, 1, 3])

    class Backwards:
        """h by h⁻¹"""

        numbers = 2
        forward, inverse = Affine().inverse, Affine().forward

    maf, iaf, z = MaskedAutoregressive(made, Backwards()), InverseAutoregressive(made, Affine()), points(5, 3)
    close(iaf(z)[0], maf.inverse(z)[0])
    close(iaf(z)[1], maf.inverse(z)[1])
    close(iaf.inverse(z)[0], Inverse(maf).inverse(z)[0])
    check_layer(iaf, z, loosen=10)


@pytest.mark.system("masked-autoregressive-flow", "oracle")
@pytest.mark.parametrize("transform", [Affine(), Spline(5, 3.0)], ids=lambda h: type(h).__name__)
def test_density_and_samples_are_zukos(transform: Transform) -> None:
    """zuko's autoregressive transform with the same masked network, through zuko's own functions of one variable."""
    made, x = network([1, 2, 3], transform.numbers), points(6, 3)

    def meta(x: Tensor) -> torch.distributions.Transform:
        numbers = made(x)
        if isinstance(transform, Affine):
            s, b = transform.read(numbers)
            return zuko.transforms.DependentTransform(torch.distributions.AffineTransform(-b / s.exp(), (-s).exp()), 1)
        from descend.ops.splines import place_knots

        own = zuko.transforms.MonotonicRQSTransform(*numbers.split([5, 5, 4], -1), bound=3.0)
        own.horizontal, own.vertical, own.derivatives = place_knots(numbers, 3.0)
        return zuko.transforms.DependentTransform(own, 1)

    theirs = zuko.transforms.AutoregressiveTransform(meta, passes=3)
    layer = MaskedAutoregressive(made, transform)
    z, log_det = layer.inverse(x)
    close(z, theirs(x))
    close(log_det, theirs.log_abs_det_jacobian(x, theirs(x)))
    close(layer(x)[0], theirs.inv(x), loosen=10)


@pytest.mark.system("inverse-autoregressive-flow", "two-groups")
def test_two_groups_are_a_coupling_layer() -> None:
    """Degrees 1, 1, 2, 2, 2: the first two variables get constant numbers, the others what a coupling layer gives."""
    made = network([1, 1, 2, 2, 2])
    with torch.no_grad():
        made.layers[-1].bias[:4] = 0  # type: ignore[operator]
    assert made.passes == 2
    maf = MaskedAutoregressive(made, Affine())

    class Second(torch.nn.Module):
        def forward(self, kept: Tensor) -> Tensor:
            whole = torch.cat([kept, torch.full((len(kept), 3), 9.0, dtype=DOUBLE)], 1)
            found: Tensor = made(whole)[:, 2:]
            return found

    coupling, x = Coupling(5, range(2), Second(), Affine()), points(4, 5)
    for ours, theirs in zip(maf.inverse(x) + maf(x), coupling.inverse(x) + coupling(x), strict=True):
        close(ours, theirs)


@pytest.mark.system("inverse-autoregressive-flow", "posterior")
def test_a_posterior_tells_the_density_of_what_it_sampled() -> None:
    """log q(z | x) against autograd: the Gaussian of ε, and the determinant of ∂z/∂ε of the whole way."""
    posterior = shake(FlowPosterior(3, context=5, layers=2, width=12))
    mean, log_var, context, eps = points(4, 3, 2), points(4, 3, 3), points(4, 5, 4), points(4, 3, 5)
    z, log_q = posterior(mean, log_var, context, eps)
    rows = torch.autograd.functional.jacobian(lambda e: posterior(mean, log_var, context, e)[0].sum(0), eps)
    log_det = torch.linalg.slogdet(rows.permute(1, 0, 2)).logabsdet
    close(log_q, torch.distributions.Normal(0, 1).log_prob(eps).sum(1) - log_det)
    other, _ = posterior(mean, log_var, context + 1, eps)
    assert (other - z).abs().min() > 0
    fresh = FlowPosterior(3, context=5, layers=2, width=12).double()
    _, log_q = fresh(mean, log_var, context, eps)
    gaussian = torch.distributions.Normal(mean, (0.5 * log_var).exp()).log_prob(mean + (0.5 * log_var).exp() * eps)
    assert (log_q - gaussian.sum(1)).abs().max() < 0.1


def test_a_chain_with_reversed_orders_is_inverted_exactly() -> None:
    flow = Chain([MaskedAutoregressive(network(order), Affine(1.0)) for order in orders(4, 3)])
    check_layer(flow, points(5, 4), loosen=100)  # three layers of scales up to e
