"""Scaling laws: the loss of a language model as a power of its parameters, its data and its compute.

    one limit       L(N) = (N_c / N)^α_N         L(D) = (D_c / D)^α_D         L(C) = (C_c / C)^α_C
    both at once    L(N, D) = [(N_c / N)^(α_N / α_D) + D_c / D]^α_D             N → ∞ gives L(D), D → ∞ gives L(N)
    with a floor    L = L_∞ + (x_c / x)^α        L(N, D) = L_∞ + A / N^α + B / D^β

N are the parameters outside the embeddings, D the tokens; L is in nats. MF 19.1 has other letters: there N is the data
and P the parameters.

Errata of VOM 14.1. At N = N_c the law gives 1 nat, not zero loss; it never reaches zero. C_c = 3.1e8 is in PF-days
(1 PF-day = 8.64e19 FLOP), not FLOPs: read as FLOPs the law promises 0.24 nats at 1e21 FLOP, below the entropy of any
text. Ten times the compute lowers the loss by 10.9%; the printed 12% is the old loss over the new, minus one. The
additive law of 14.4.4 needs constants of its own: with those of the single laws it gives 4.74 nats where the joint
law gives 1.73 (`HOFFMANN` has constants that were fitted for it: 2.00).

Systems: kaplan-power-laws, unified-scaling-law, irreducible-loss
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from descend.errors import Mistake

PF_DAY = 8.64e19
"""FLOPs of a machine of 1e15 a second, running for a day."""
UNITS = {"flop": 1.0, "pf-day": PF_DAY}


@dataclass(frozen=True)
class PowerLaw:
    """L(x) = floor + (scale / x)^alpha."""

    scale: float
    alpha: float
    floor: float = 0.0

    def __call__(self, x: float) -> float:
        if not x > 0:
            raise Mistake(f"a scaling law at {x:g}: sizes, tokens and FLOPs must be above 0")
        return self.floor + self.reducible(x)

    def reducible(self, x: float) -> float:
        """What more of x can still take away."""
        return math.exp(self.alpha * (math.log(self.scale) - math.log(x)))

    def invert(self, loss: float) -> float:
        """The x that reaches this loss: scale / (loss − floor)^(1/alpha)."""
        if not loss > self.floor:
            raise Mistake(f"no size reaches a loss of {loss:g}: the law ends at its floor of {self.floor:g}")
        return math.exp(math.log(self.scale) - math.log(loss - self.floor) / self.alpha)

    @property
    def prefactor(self) -> float:
        """The a of L = floor + a x^−alpha."""
        return math.exp(self.alpha * math.log(self.scale))


KAPLAN_N = PowerLaw(8.8e13, 0.076)
KAPLAN_D = PowerLaw(5.4e13, 0.095)
KAPLAN_C = PowerLaw(3.1e8 * PF_DAY, 0.050)
"""Of FLOPs."""


def convert_compute(amount: float, unit: str) -> float:
    """FLOPs of an amount of compute in "flop" or "pf-day"."""
    if unit not in UNITS:
        raise Mistake(f"compute in {unit!r}: the units are {', '.join(UNITS)}")
    return amount * UNITS[unit]


def compute_loss(amount: float, unit: str = "flop") -> float:
    """L(C) of the best allocation of this much compute."""
    return KAPLAN_C(convert_compute(amount, unit))


def loss_factor(times: float, alpha: float) -> float:
    """times^−alpha: what is left of a loss without a floor after so many times the size."""
    return times**-alpha


@dataclass(frozen=True)
class UnifiedLaw:
    """L(N, D) = [(N_c / N)^(α_N / α_D) + D_c / D]^α_D."""

    n_scale: float
    d_scale: float
    n_alpha: float
    d_alpha: float

    @property
    def ratio(self) -> float:
        """α_N / α_D."""
        return self.n_alpha / self.d_alpha

    def __call__(self, parameters: float, tokens: float) -> float:
        return float(((self.n_scale / parameters) ** self.ratio + self.d_scale / tokens) ** self.d_alpha)

    def tokens_for(self, loss: float, parameters: float) -> float:
        """D of a contour: what a model of this size must read to reach the loss; infinite for one too small."""
        left = loss ** (1 / self.d_alpha) - (self.n_scale / parameters) ** self.ratio
        return self.d_scale / left if left > 0 else math.inf

    @property
    def of_parameters(self) -> PowerLaw:
        """The limit of endless data."""
        return PowerLaw(self.n_scale, self.n_alpha)

    @property
    def of_tokens(self) -> PowerLaw:
        """The limit of an endless model."""
        return PowerLaw(self.d_scale, self.d_alpha)


@dataclass(frozen=True)
class AdditiveLaw:
    """L(N, D) = floor + a / N^alpha + b / D^beta."""

    floor: float
    a: float
    alpha: float
    b: float
    beta: float

    def __call__(self, parameters: float, tokens: float) -> float:
        return self.floor + self.a / parameters**self.alpha + self.b / tokens**self.beta

    @classmethod
    def join(cls, floor: float, of_parameters: PowerLaw, of_tokens: PowerLaw) -> AdditiveLaw:
        """VOM 14.4.4: floor + (N_c / N)^α_N + (D_c / D)^α_D."""
        n, d = replace(of_parameters, floor=0.0), replace(of_tokens, floor=0.0)
        return cls(floor, n.prefactor, n.alpha, d.prefactor, d.alpha)


KAPLAN_JOINED = UnifiedLaw(8.8e13, 5.4e13, 0.076, 0.095)
"""With the constants of the single laws, as VOM 14.2 does."""
KAPLAN_REFITTED = UnifiedLaw(6.4e13, 1.8e13, 0.076, 0.103)
"""With those that the source paper fits for the joint law."""
HOFFMANN = AdditiveLaw(1.69, 406.4, 0.34, 410.7, 0.28)
"""Hoffmann et al. (2022), their parametric fit."""
