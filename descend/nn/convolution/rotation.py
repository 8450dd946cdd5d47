"""Convolutions that do not mind rotation: RIC-C and the Bessel convolution.

    RIC-C    y[p] = b + w_0 x[p] + Σ_r Σ_k w_rk x(p + r (cos, sin)(θ_p + 2πk / 8r))     k = 0 .. 8r − 1, r = 1 .. ⌊K/2⌋

    θ_p is the angle of p about the centre of the map ((H − 1)/2, (W − 1)/2); x between pixels is bilinear, 0 outside.
    The kernel turns with the place, so when the image is rotated about its centre the map is rotated and nothing else:
    a global pool of it is invariant. As many weights as an ordinary K×K kernel: 1 + 8 + 16 + .. = K². Exact for quarter
    turns of squares with an even side; on an odd side the middle pixel has no angle (0 is taken); other angles hold up
    to interpolation. It is NOT equivariant to shifts: the centre is special.

    Bessel   φ_mj[p] = Σ_q N_mj J_m(k_mj r_q) e^{−i m θ_q} x[p + q]       q in the window, r_q ≤ 1 (half its side)
             a[p] = b + Σ_m | Σ_j w_mj φ_mj[p] |²                          w_mj complex, real for m = 0
             k_mj: the zeros of J_m′ (and 0 for m = 0) up to k_max = π K / 2

    A rotation of the window by α multiplies φ_mj by a number e^{± i m α} of modulus 1: a does not change. Exact for
    quarter turns, otherwise up to the grid. With mirror images too: a = b + Σ_m |Σ_j Re(w) φ|² + |Σ_j Im(w) φ|².

One line each in DLD 4.8. RIC-C (Mo and Zhao, arXiv 2211.11812) and B-CNN (Delchevalerie and others, NeurIPS 2021 and
arXiv 2304.09214) were read from the authors' published code, not from the papers' text. Differences: their RIC-C code
rounds θ to four digits (here not: quarter turns are exact) and has 3×3 kernels only; rings for larger kernels follow
its pattern. Their Bessel code takes N_mj from a sum over whole radii r = 0 .. ⌊K/2⌋ of J_m(k_mj r)² r; here it is the
closed form on the unit disc, 1/N² = π (1 − m²/k²) J_m(k)² (π for k = 0), which only scales the weights. They take each
function at the pixel's centre; here it is its mean over the pixel, which matters for 5×5 windows and hardly for 7×7
(measured in `labs.rotation_invariance`). Theirs lets the imaginary part of w_0j learn (from 0); here it
is not there. Unconfirmed: the conjugate that the papers write on w.

Systems: ric-convolution, bessel-convolution
"""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy.special import jnp_zeros, jv
from torch import Tensor, nn
from torch.nn import functional as F

POINTS = 9  # places inside a pixel, in each direction, over which a Bessel function is averaged

# Rotation-invariant coordinates


def ring_points(height: int, width: int, kernel: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Row and column of the K² points that each pixel looks at: (K², height, width, 2).

    The order is that of the kernel's cells for K = 3: half of the ring, the middle, the other half.
    """
    if kernel % 2 == 0:
        raise ValueError(f"a kernel of {kernel} has no middle; give an odd size")
    rows, columns = torch.arange(height, dtype=torch.float64), torch.arange(width, dtype=torch.float64)
    place = torch.stack(torch.meshgrid(rows, columns, indexing="ij"), -1)
    away = place - torch.tensor([(height - 1) / 2, (width - 1) / 2], dtype=torch.float64)
    theta = torch.atan2(away[..., 1], away[..., 0])
    rings = [
        r * torch.stack([turn.cos(), turn.sin()], -1)
        for r in range(1, kernel // 2 + 1)
        for turn in (theta + 2 * math.pi * k / (8 * r) for k in range(8 * r))
    ]
    half = len(rings) // 2
    return torch.stack([place + step for step in [*rings[:half], torch.zeros_like(place), *rings[half:]]]).to(dtype)


def sample(x: Tensor, points: Tensor) -> Tensor:
    """x (b, c, h, w) at points (n, h', w', 2) given as row and column, bilinear, 0 outside: (b, c, n, h', w')."""
    h, w = x.shape[-2:]
    n, rows, columns, _ = points.shape
    size = torch.tensor([h, w], dtype=points.dtype, device=points.device)
    at = ((2 * points + 1) / size - 1).flip(-1).view(1, n * rows, columns, 2).to(x.dtype)
    return F.grid_sample(x, at.expand(len(x), -1, -1, -1), align_corners=False).unflatten(2, (n, rows))


class RICConv2d(nn.Module):
    """(b, c_in, h, w) -> (b, c_out, h, w): a drop-in for nn.Conv2d(c_in, c_out, kernel, padding=kernel // 2)."""

    def __init__(self, c_in: int, c_out: int, kernel: int = 3):
        super().__init__()
        like = nn.Conv2d(c_in, c_out, kernel)  # its initialization too
        self.weight, self.bias = like.weight, like.bias
        self.kernel = kernel
        self._points: dict[tuple[int, int], Tensor] = {}

    def forward(self, x: Tensor) -> Tensor:
        h, w = x.shape[-2:]
        if (h, w) not in self._points:
            self._points[h, w] = ring_points(h, w, self.kernel)
        seen = sample(x, self._points[h, w].to(x.device))
        assert self.bias is not None
        return torch.einsum("bcnhw,ocn->bohw", seen, self.weight.flatten(2)) + self.bias[:, None, None]


# Bessel functions


def bessel_zeros(kernel: int) -> list[list[float]]:
    """k_mj ≤ π K / 2 for m = 0, 1, ..: the zeros of J_m′, and 0 for m = 0."""
    most = math.pi * kernel / 2
    found: list[list[float]] = []
    while True:
        m = len(found)
        zeros = [float(z) for z in jnp_zeros(m, kernel + 1) if z <= most]  # neighbours are about π apart: enough
        if not zeros:
            return found
        found.append([0.0, *zeros] if m == 0 else zeros)


def bessel_norm(m: int, k: float) -> float:
    """N: 1 / √(∫ J_m(k r)² over the unit disc), for a zero k of J_m′."""
    square = math.pi if k == 0 else math.pi * (1 - (m / k) ** 2) * float(jv(m, k)) ** 2
    return 1 / math.sqrt(square)


def bessel_basis(kernel: int, points: int = POINTS) -> tuple[Tensor, Tensor]:
    """N_mj J_m(k_mj r) e^{−i m θ} on the window, (f, K, K) complex, and m of each function (f); 0 outside the disc.

    Each pixel holds the mean over points × points places inside it; with 1 it is the value at its centre.
    """
    if kernel % 2 == 0:
        raise ValueError(f"a kernel of {kernel} has no middle; give an odd size")
    half = (kernel - 1) / 2
    inner = (np.arange(points) + 0.5) / points - 0.5
    line = ((np.arange(kernel) - half)[:, None] + inner).reshape(-1) / half
    across, down = np.meshgrid(line, line)
    r, theta = np.hypot(across, down), np.arctan2(down, across)
    inside = r <= 1 + 1e-12
    orders = [(m, k) for m, zeros in enumerate(bessel_zeros(kernel)) for k in zeros]
    waves = [bessel_norm(m, k) * jv(m, k * r) * np.exp(-1j * m * theta) * inside for m, k in orders]
    pixels = np.stack(waves).reshape(-1, kernel, points, kernel, points).mean((2, 4))
    return torch.from_numpy(pixels), torch.tensor([m for m, _ in orders])


class BesselConv2d(nn.Module):
    """(b, c_in, h, w) -> (b, c_out, h', w'): rotation of the input rotates the map. Nonlinear: a sum of squares."""

    real: Tensor
    imaginary: Tensor
    order: Tensor

    def __init__(self, c_in: int, c_out: int, kernel: int = 5, stride: int = 1, padding: int = 0):
        super().__init__()
        basis, order = bessel_basis(kernel)
        self.c_in, self.c_out, self.stride, self.padding = c_in, c_out, stride, padding
        self.orders = int(order.max()) + 1
        for name, value in (("real", basis.real), ("imaginary", basis.imag)):
            self.register_buffer(name, value.to(torch.get_default_dtype()).contiguous(), persistent=False)
        self.register_buffer("order", order, persistent=False)
        scale = math.sqrt(2 / (c_in * kernel**2))  # as the authors start
        turning = int((order > 0).sum())
        self.w_real = nn.Parameter(scale * torch.randn(c_out, c_in, len(order)))
        self.w_imaginary = nn.Parameter(scale * torch.randn(c_out, c_in, turning))  # none for m = 0
        self.bias = nn.Parameter(torch.empty(c_out).uniform_(-1, 1) / math.sqrt(c_in * kernel**2))

    def forward(self, x: Tensor) -> Tensor:
        kernels = self.kernels()
        y = F.conv2d(x, kernels.flatten(0, 2), None, self.stride, self.padding)
        return y.square().unflatten(1, kernels.shape[:3]).sum((1, 2)) + self.bias[:, None, None]

    def kernels(self) -> Tensor:
        """Real and imaginary part of Σ_j w_mj N J e^{−imθ}: (2, orders, c_out, c_in, K, K)."""
        a, b = self.w_real, self.whole_imaginary()
        real = self.mix(a, self.real) - self.mix(b, self.imaginary)
        return torch.stack([real, self.mix(a, self.imaginary) + self.mix(b, self.real)])

    def whole_imaginary(self) -> Tensor:
        """Im w with its zeros for m = 0."""
        return F.pad(self.w_imaginary, (len(self.order) - self.w_imaginary.shape[-1], 0))

    def mix(self, w: Tensor, basis: Tensor) -> Tensor:
        """Σ_j w_mj basis_mj for each m: (orders, c_out, c_in, K, K)."""
        of_m = F.one_hot(self.order, self.orders).to(w.dtype)  # (f, orders)
        return torch.einsum("ocf,fm,fhw->mochw", w, of_m, basis)


class MirrorBesselConv2d(BesselConv2d):
    """The form that does not mind mirror images either: real and imaginary weights answer separately."""

    def kernels(self) -> Tensor:
        """(4, orders, c_out, c_in, K, K): both parts of Σ Re(w) basis and of Σ Im(w) basis."""
        parts = [
            self.mix(w, basis) for w in (self.w_real, self.whole_imaginary()) for basis in (self.real, self.imaginary)
        ]
        return torch.stack(parts)
