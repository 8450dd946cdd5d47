"""RIC-C and the Bessel convolution: exact for quarter turns, near for other angles, and what each keeps."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.special import jvp
from torch import Tensor, nn

from descend.metrics.equivariance import equivariance_error, relative_change, rotate_images, shift_zeros, turn_quarters
from descend.nn.convolution.rotation import (
    BesselConv2d,
    MirrorBesselConv2d,
    RICConv2d,
    bessel_basis,
    bessel_norm,
    bessel_zeros,
    ring_points,
    sample,
)
from descend.ops.images import filters
from tests.close import close

RIC, BESSEL = "ric-convolution", "bessel-convolution"


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def bar(side: int) -> Tensor:
    """A smooth upright bar: interpolation hardly changes it, rotation does. 0 at the border."""
    line = torch.linspace(-1, 1, side, dtype=torch.float64)
    y, x = torch.meshgrid(line, line, indexing="ij")
    return torch.exp(-((x - 0.1) ** 2) / 0.03 - (y + 0.05) ** 2 / 0.15)[None, None]


def layers(c_in: int = 2, c_out: int = 3) -> list[nn.Module]:
    torch.manual_seed(0)
    kinds = RICConv2d(c_in, c_out), RICConv2d(c_in, c_out, 5), BesselConv2d(c_in, c_out, 5, padding=2)
    return [layer.double() for layer in (*kinds, MirrorBesselConv2d(c_in, c_out, 3, padding=1))]


@pytest.mark.system("bessel-convolution", "quarter-turns")
@pytest.mark.system("ric-convolution", "quarter-turns")
@pytest.mark.system(RIC)
@pytest.mark.system(BESSEL)
def test_a_quarter_turn_turns_the_map_exactly() -> None:
    x = normal(2, 2, 8, 8)
    for layer in layers():
        scale = float(layer(x).detach().abs().max())
        for quarters in (1, 2, 3):
            assert equivariance_error(layer, x, lambda z: turn_quarters(z, quarters)) < 1e-12 * scale
    plain = nn.Conv2d(2, 3, 3, padding=1).double()
    assert equivariance_error(plain, x, turn_quarters) > 0.1
    odd = normal(1, 2, 7, 7)  # the middle pixel of an odd side has no angle
    gap = (layers()[0](turn_quarters(odd)) - turn_quarters(layers()[0](odd))).abs().amax((0, 1))
    assert gap[3, 3] > 1e-3
    gap[3, 3] = 0
    assert gap.max() < 1e-12


@pytest.mark.system("bessel-convolution", "other-angles")
@pytest.mark.system("ric-convolution", "other-angles")
@pytest.mark.system(RIC)
@pytest.mark.system(BESSEL)
def test_other_angles_up_to_the_grid() -> None:
    """The largest answer changes by a few percent at most; that of an ordinary edge filter by more."""
    x = bar(32)
    largest = lambda f: lambda z: f(z).amax((2, 3))
    for angle in (20.0, 45.0, 70.0):
        turn = lambda z: rotate_images(z, angle)
        for layer in layers(1):
            assert relative_change(largest(layer), x, turn) < 0.12
    edge = lambda z: filters.apply(z, filters.kernel("vertical"), padding=1)
    assert relative_change(largest(edge), x, turn_quarters) > 0.3


@pytest.mark.system("ric-convolution", "points")
@pytest.mark.system(RIC)
def test_points_of_the_rings() -> None:
    """The pixel below the centre (θ = 0) looks down first, then around; K² points, the middle among them."""
    points = ring_points(8, 8, 3)
    assert points.shape == (9, 8, 8, 2)
    place = torch.tensor([6.0, 3.5], dtype=torch.float64)
    points = ring_points(8, 7 + 1, 3)[:, 6, 3] - torch.tensor([6.0, 3.0], dtype=torch.float64)
    theta = math.atan2(3 - 3.5, place[0].item() - 3.5)
    turns = [theta + 2 * math.pi * k / 8 for k in range(8)]
    expected = [(math.cos(a), math.sin(a)) for a in turns]
    close(points, torch.tensor([*expected[:4], (0.0, 0.0), *expected[4:]], dtype=torch.float64))
    radii = (ring_points(8, 8, 5)[:, 1, 1] - 1).norm(dim=-1)
    close(radii.sort().values, torch.tensor([0.0] + [1.0] * 8 + [2.0] * 16, dtype=torch.float64))
    with pytest.raises(ValueError, match="odd"):
        ring_points(8, 8, 4)


@pytest.mark.system("ric-convolution", "points")
@pytest.mark.system(RIC)
def test_sampling_is_bilinear_with_zeros_outside() -> None:
    x = torch.arange(12.0, dtype=torch.float64).view(1, 1, 3, 4)
    at = torch.tensor([[0.0, 0.0], [1.5, 2.25], [2.0, 3.0], [-0.5, 1.0], [4.0, 4.0]], dtype=torch.float64)
    found = sample(x, at.view(5, 1, 1, 2)).flatten()
    close(found, torch.tensor([0.0, 8.25, 11.0, 0.5, 0.0], dtype=torch.float64))


@pytest.mark.system("ric-convolution", "drop-in")
@pytest.mark.system(RIC)
def test_a_drop_in_without_more_weights() -> None:
    for kernel in (3, 5):
        ours, plain = RICConv2d(2, 4, kernel), nn.Conv2d(2, 4, kernel, padding=kernel // 2)
        x = torch.randn(1, 2, 6, 9)
        assert ours(x).shape == plain(x).shape
        assert {k: v.shape for k, v in ours.state_dict().items()} == {k: v.shape for k, v in plain.state_dict().items()}
    layer = RICConv2d(1, 1).double()
    with torch.no_grad():
        layer.weight.fill_(0)
        layer.weight[0, 0, 1, 1] = 2.0
        layer.bias.fill_(1.0)
    x = normal(1, 1, 5, 6)
    close(layer(x), 2 * x + 1)
    moved = lambda z: shift_zeros(z, (2, 0))
    ours = RICConv2d(1, 2).double()
    assert equivariance_error(ours, normal(1, 1, 12, 12), moved, border=4) > 1e-3, "the centre is special"


@pytest.mark.system("bessel-convolution", "basis")
@pytest.mark.system(BESSEL)
def test_zeros_and_norms() -> None:
    """A 5×5 window keeps 3, 2, 2, 1, 1, 1, 1 functions of the orders 0..6 below k_max = 5π/2."""
    zeros = bessel_zeros(5)
    assert [len(ks) for ks in zeros] == [3, 2, 2, 1, 1, 1, 1]
    assert zeros[0][0] == 0
    for m, ks in enumerate(zeros):
        assert all(abs(jvp(m, k)) < 1e-9 for k in ks if k)
        assert all(k <= 5 * math.pi / 2 for k in ks)


@pytest.mark.system("bessel-convolution", "basis")
@pytest.mark.system(BESSEL)
def test_the_basis_is_orthonormal_on_a_fine_grid() -> None:
    from scipy.special import jv

    n = 201
    line = torch.linspace(-1, 1, n, dtype=torch.float64)
    y, x = torch.meshgrid(line, line, indexing="ij")
    r, theta = torch.hypot(x, y), torch.atan2(y, x)
    inside = (r <= 1).double() * (2 / (n - 1)) ** 2
    orders = [(m, k) for m, ks in enumerate(bessel_zeros(5)) for k in ks]
    waves = [
        bessel_norm(m, k) * torch.from_numpy(jv(m, (k * r).numpy())) * torch.exp(-1j * m * theta) for m, k in orders
    ]
    flat = torch.stack(waves).flatten(1)
    gram = (flat * inside.flatten()) @ flat.mH
    assert (gram - torch.eye(len(orders), dtype=torch.complex128)).abs().max() < 0.02


@pytest.mark.system("bessel-convolution", "response")
@pytest.mark.system(BESSEL)
def test_the_response_is_the_equation() -> None:
    """a = b + Σ_m |Σ_j w_mj φ_mj|², written out at one pixel; corners of the window lie outside the disc."""
    torch.manual_seed(0)
    layer = BesselConv2d(2, 3, 5).double()
    basis, order = bessel_basis(5)
    assert not basis[:, 0, 0].any()
    layer.real, layer.imaginary = basis.real, basis.imag  # with all digits of float64
    x = normal(1, 2, 7, 7)
    phi = (basis[:, None] * x[0, :, 1:6, 2:7]).sum((-2, -1))  # (f, c_in)
    w = torch.complex(layer.w_real, layer.whole_imaginary()).detach()
    assert not w.imag[:, :, order == 0].any()
    total = layer.bias.detach()[1].clone()
    for m in range(7):
        total += (w[1][:, order == m] * phi[order == m].T).sum().abs() ** 2
    close(layer(x)[0, 1, 1, 2], total)
    assert len(order) * 6 + int((order > 0).sum()) * 6 + 3 == sum(p.numel() for p in layer.parameters())


@pytest.mark.system("bessel-convolution", "mirror")
@pytest.mark.system(BESSEL)
def test_mirror_images() -> None:
    """The mirror form answers the same to a mirrored image, the other one does not."""
    torch.manual_seed(0)
    x = normal(1, 2, 8, 8)
    flip = lambda z: z.flip(-1)
    mirror, plain = (kind(2, 3, 5, padding=2).double() for kind in (MirrorBesselConv2d, BesselConv2d))
    scale = float(mirror(x).detach().abs().max())
    assert equivariance_error(mirror, x, flip) < 1e-6 * scale
    assert equivariance_error(plain, x, flip) > 1e-3


@pytest.mark.system(RIC)
@pytest.mark.system(BESSEL)
def test_gradients_and_devices_of_the_state() -> None:
    x = normal(1, 2, 6, 6).requires_grad_()
    for layer in layers():
        assert torch.autograd.gradcheck(lambda z: layer(z)[..., 1:3, 2], (x,))
        layer(x).sum().backward()
        assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in layer.parameters())
        assert set(layer.state_dict()) == {name for name, _ in layer.named_parameters()}
    assert BesselConv2d(1, 2, 3, stride=2, padding=1)(torch.zeros(1, 1, 8, 8)).shape == (1, 2, 4, 4)
    with pytest.raises(ValueError, match="odd"):
        BesselConv2d(1, 1, 4)
