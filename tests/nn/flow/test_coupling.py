"""Coupling layers: the Jacobian's blocks, pluggable functions, splines against zuko, zuko's coupling as the oracle."""

from __future__ import annotations

import pytest
import torch
import zuko  # type: ignore[import-untyped]
from torch import Tensor

from descend.nn.flow.bijection import Chain
from descend.nn.flow.coupling import Conditioner, Coupling, alternate
from descend.nn.flow.transforms import Additive, Affine, Spline, Transform
from descend.ops.splines import Knots, bend, place_knots, unbend
from tests.close import close
from tests.nn.flow.jacobians import DOUBLE, check_layer, jacobian, points, shake

TRANSFORMS: list[Transform] = [Additive(), Affine(), Spline(6, 3.0)]
names = lambda h: type(h).__name__


def make(transform: Transform, size: int = 5, kept: range = range(2)) -> Coupling:
    g = Conditioner(len(kept), size - len(kept), transform.numbers, 16, 1)
    return shake(Coupling(size, kept, g, transform))


@pytest.mark.system("realnvp")
@pytest.mark.system("realnvp", "jacobian")
def test_the_inverse_is_block_lower_triangular() -> None:
    """log|det| = −Σ s; the upper right block is 0; the round trip is exact."""
    layer, x = make(Affine()), points(4, 5)
    z, log_det = layer.inverse(x)
    found = jacobian(layer, x, inverse=True)
    s, b = Affine().read(layer.conditioner(x[:, :2]))
    close(log_det, -s.sum(1))
    close(torch.linalg.slogdet(found).logabsdet, -s.sum(1))
    assert found[:, :2, 2:].abs().max() == 0
    close(found[:, :2, :2], torch.eye(2, dtype=DOUBLE).expand(4, 2, 2))
    close(z[:, 2:], (x[:, 2:] - b) * (-s).exp())
    assert (layer(z)[0] - x).abs().max() < 1e-12
    check_layer(layer, points(4, 5))


@pytest.mark.system("realnvp", "alternating")
def test_layers_alternate_so_that_everything_moves() -> None:
    assert alternate(5, 3) == [range(3), range(3, 5), range(3)]
    assert alternate(2, 4) == [range(1, 2), range(1)] * 2
    layers = [make(Affine(), 5, kept) for kept in alternate(5, 3)[:2]]
    z = points(3, 5)
    one, two = layers[0](z)[0], Chain(layers)(z)[0]
    assert torch.equal(one[:, :3], z[:, :3])
    assert (two != z).all()
    check_layer(Chain(layers), z)


@pytest.mark.system("general-coupling-flow")
@pytest.mark.system("general-coupling-flow", "pluggable", "log-det")
@pytest.mark.parametrize("kept", [range(2), range(3, 5)])
@pytest.mark.parametrize("transform", TRANSFORMS, ids=names)
def test_any_function_can_be_plugged_in(transform: Transform, kept: range) -> None:
    layer, z = make(transform, 5, kept), points(6, 5)
    check_layer(layer, z, loosen=10)  # a spline's root loses a digit
    x, log_det = layer(z)
    rest = [n for n in range(5) if n not in kept]
    close(log_det, torch.log(jacobian(layer, z)[:, rest, rest].abs()).sum(1), loosen=10)
    assert torch.equal(x[:, list(kept)], z[:, list(kept)])


@pytest.mark.system("general-coupling-flow", "affine")
@pytest.mark.system("realnvp")
def test_an_affine_function_is_real_nvp_by_zuko() -> None:
    """zuko's coupling transform with the same network and torch's own affine map."""
    layer, x = make(Affine()), points(7, 5)

    def meta(kept: Tensor) -> torch.distributions.Transform:
        s, b = Affine().read(layer.conditioner(kept))
        own = torch.distributions.AffineTransform(b, s.exp())
        return zuko.transforms.DependentTransform(own, 1)

    theirs = zuko.transforms.CouplingTransform(meta, torch.tensor([True, True, False, False, False]))
    ours, log_det = layer(x)
    close(ours, theirs(x))
    close(log_det, theirs.log_abs_det_jacobian(x, theirs(x)))
    close(layer.inverse(x)[0], theirs.inv(x))


@pytest.mark.system("general-coupling-flow", "splines")
def test_splines_are_zukos() -> None:
    """The same knots; inside, outside and at the ends; both ways."""
    random = torch.Generator().manual_seed(0)
    numbers = torch.randn(9, 3, 3 * 6 - 1, dtype=DOUBLE, generator=random) * 2
    knots = place_knots(numbers, 2.5)
    theirs = zuko.transforms.MonotonicRQSTransform(*numbers.split([6, 6, 5], -1), bound=2.5)
    theirs.horizontal, theirs.vertical, theirs.derivatives = knots
    x = points(9, 3) * 1.5
    assert (x.abs() > 2.5).any()
    y, log_slope = bend(x, knots)
    close(y, theirs(x))
    close(log_slope, theirs.log_abs_det_jacobian(x, theirs(x)))
    close(unbend(y, knots)[0], x)
    close(unbend(x, knots)[0], theirs.inv(x))


@pytest.mark.system("general-coupling-flow", "splines")
def test_knots_rise_and_zeros_are_the_identity() -> None:
    knots = place_knots(torch.zeros(1, 3 * 8 - 1, dtype=DOUBLE), 4.0)
    x = torch.linspace(-6, 6, 41, dtype=DOUBLE)[:, None]
    close(bend(x[:, 0], Knots(*(part.expand(41, 9).contiguous() for part in knots)))[0], x[:, 0])
    close(knots.d, torch.ones(1, 9, dtype=DOUBLE))
    wild = place_knots(torch.randn(50, 23, dtype=DOUBLE) * 20, 4.0)
    assert (wild.x.diff() > 0).all()
    assert (wild.y.diff() > 0).all()
    assert (wild.d > 0).all()
    x = torch.rand(50, dtype=DOUBLE) * 8 - 4
    assert bend(x, wild)[1].isfinite().all()
    numbers = torch.randn(5, 23, dtype=DOUBLE, requires_grad=True)
    assert torch.autograd.gradcheck(lambda n: bend(x[:5], place_knots(n, 4.0)), (numbers,))


def test_what_stays_is_at_an_end() -> None:
    for kept in (range(0), range(5), range(1, 3)):
        with pytest.raises(ValueError, match="cannot be what stays"):
            Coupling(5, kept, torch.nn.Identity(), Affine())
