"""Positions as numbers: the sinusoids and what can be proven of them, codes that the books reject, ALiBi.

    ω_i = base^(−2i/d)                      i = 0 .. d/2 − 1, base 10000
    p_{t,2i} = sin(ω_i t),  p_{t,2i+1} = cos(ω_i t)                       t, i from 0 (DLN, MF, S940, VOM 11)
    p_ij = sin((i−1) / base^((j−1)/d)) for odd j, cos((i−1) / base^((j−2)/d)) for even j     from 1 (VOM 12.3.1)

The two index conventions give the same numbers. What follows from the equation:

    λ_i = 2π / ω_i                          wavelengths: geometric, from 2π to 2π base^((d−2)/d)
    p_{t+k} = M_k p_t                       M_k: blocks [cos ω_i k, sin ω_i k; −sin ω_i k, cos ω_i k], free of t
    p_t · p_{t+k} = Σ_i cos(ω_i k)          depends on k alone;  |p_t|² = d/2
    t = atan2(sin, cos) / ω_i               within one wavelength; the sine alone is ambiguous

Errata: the slowest wavelength at d = 512 is 60,611 and not 62,800 = 2π · 10000 (VOM 11.3.5, DLN), which is the limit of
the exponent 1. At ω = 0.01 positions 5 and 50 differ by 0.446, so they are not "nearly identical" (VOM 11.3.1).

    ALiBi      S_ij − m_h |i − j|,  m_h = 2^(−8h/H), h = 1..H        ½ .. 1/256 for 8 heads (S940 12.5 names it only)

Where H is not a power of two, the slopes are those of the next lower power and then every second one of the next
higher, as in the released models.

Systems: sinusoidal-positional-encoding, sinusoidal-encoding-analysis, position-encoding-labs, alibi
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from descend.ops.attention.rotary import frequencies, rotation

BASE = 10000.0


def even(width: int) -> int:
    """The width, which must be even: sines and cosines come in pairs."""
    if width < 2 or width % 2:
        raise ValueError(f"width {width}: sine and cosine come in pairs, so it must be even")
    return width


def sinusoidal(t: Tensor, width: int, base: float = BASE) -> Tensor:
    """p_t (.., d) of positions t (..), computed in float64 and returned in float32 unless t is float64."""
    angle = t[..., None].double() * frequencies(even(width), base, torch.float64).to(t.device)
    pairs = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2)
    return pairs if t.dtype == torch.float64 else pairs.float()


def sinusoidal_from_one(i: Tensor, width: int, base: float = BASE) -> Tensor:
    """p_ij (.., d) for i = 1, 2, … and j = 1..d, as VOM 12.3.1 counts."""
    j = torch.arange(1, even(width) + 1, device=i.device)
    odd = j % 2 == 1
    exponent = torch.where(odd, j - 1, j - 2).double() / width
    angle = (i[..., None].double() - 1) / base**exponent
    p = torch.where(odd, angle.sin(), angle.cos())
    return p if i.dtype == torch.float64 else p.float()


def wavelengths(omega: Tensor) -> Tensor:
    """λ = 2π / ω: after this many positions a band repeats."""
    return 2 * math.pi / omega


def slowest_wavelength(width: int, base: float = BASE) -> float:
    """2π base^((d−2)/d): of the last band."""
    return float(wavelengths(frequencies(even(width), base, torch.float64))[-1])


def cycles(length: float, wavelength: float) -> float:
    """How often a band repeats within `length` positions."""
    return length / wavelength


def band(t: Tensor, omega: float) -> Tensor:
    """The pair (sin ωt, cos ωt) of one band: t (..) -> (.., 2)."""
    angle = omega * t.double()
    return torch.stack([angle.sin(), angle.cos()], dim=-1)


def position_in_band(pair: Tensor, omega: float) -> Tensor:
    """t from (sin ωt, cos ωt), for 0 ≤ t < λ."""
    return torch.atan2(pair[..., 0], pair[..., 1]).remainder(2 * math.pi) / omega


def shift(k: float, width: int, base: float = BASE) -> Tensor:
    """M_k (d, d) with p_{t+k} = M_k p_t for every t: "look k back" is one linear map."""
    return rotation(-k * frequencies(even(width), base, torch.float64))


def offset_product(k: float, width: int, base: float = BASE) -> float:
    """Σ_i cos(ω_i k) = p_t · p_{t+k} for every t."""
    return float((k * frequencies(even(width), base, torch.float64)).cos().sum())


def binary(n: Tensor, bits: int) -> Tensor:
    """The bits (.., bits) of whole numbers, highest first: the discrete relative of the sinusoids."""
    return n[..., None] >> torch.arange(bits - 1, -1, -1, device=n.device) & 1


def bit_frequency(bit: int) -> float:
    """1 / 2^(bit+1): bit 0, the lowest, changes at every number and has period 2."""
    return 0.5 ** (bit + 1)


def fractions(n: int) -> Tensor:
    """(t + 1) / (n + 1), between 0 and 1; the same t has another code in a text of another length."""
    return torch.arange(1, n + 1) / (n + 1)


def relative_step(a: float, b: float) -> float:
    """(b − a) / a: from 1 to 2 an index doubles, from 100 to 101 it hardly moves."""
    return (b - a) / a


def mean_cosine(width: int) -> float:
    """√(2/(πd)), the mean |cos| of random vectors in high dimension: why adding p to x does little harm."""
    return math.sqrt(2 / (math.pi * width))


def alibi_slopes(heads: int) -> Tensor:
    """m (h,): 2^(−8/H), 2^(−16/H), …, 2^(−8)."""
    if heads < 1:
        raise ValueError(f"{heads} heads: ALiBi needs at least one")
    power = 2 ** math.floor(math.log2(heads))
    more = geometric_slopes(2 * power)[::2][: heads - power]
    return torch.cat([geometric_slopes(power), more])


def geometric_slopes(heads: int) -> Tensor:
    """2^(−8h/H) for h = 1..H, H a power of two."""
    return 2.0 ** (-8 * torch.arange(1, heads + 1) / heads)


def alibi(heads: int, t: int, s: int) -> Tensor:
    """−m_h |i − j| (h, t, s) for t queries that are the last of s positions; later keys are left to the causal mask."""
    distance = (torch.arange(s) - torch.arange(s - t, s)[:, None]).abs()
    return -alibi_slopes(heads)[:, None, None] * distance
