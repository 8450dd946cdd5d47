"""How large a model a given compute should train: C = 6 N D, and the law decides how to share it.

    Chinchilla          D = 20 N       C = 6 N D = 120 N²       N = √(C / 120)        D = 20 N
    by minimisation     min over N of L(N, C / 6N)              N_opt = G · (C / 6)^a
      unified law       a = α_D / (α_N + α_D)                   G = ((α_N / α_D) N_c^r / D_c)^a,   r = α_N / α_D
      additive law      a = β / (α + β)                         G = (α A / (β B))^(1 / (α + β))

Six FLOPs for each parameter and token: two forward, four backward.

Errata. VOM 14.7.1 prints N_opt = 0.7e9 (C / 1e21)^½ (`print_allocation`): 7B on 140B tokens cost 5.88e21 FLOPs, 6% of
the 1e23 they are given; the prefactor that spends it is 2.89e9. N = C^½ and D = C^½ (14.3.1), taken as equalities,
spend six times the compute. Chinchilla has 2.5 times fewer parameters than GPT-3; 4 times is Gopher (14.3.2). For the
exponent a, 14.9.4 quotes 0.73 (runs stopped early) and 0.5 (Chinchilla); minimising its own unified law gives 0.556,
and Hoffmann et al.'s additive law 0.45.

Systems: chinchilla-allocation, allocation-by-minimisation
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from scipy.optimize import minimize_scalar

from descend.errors import Mistake
from descend.theory.scaling_laws import AdditiveLaw, UnifiedLaw

FLOPS = 6.0
"""Of a parameter and a token in training."""
TOKENS = 20.0
"""Of a parameter at Chinchilla's optimum."""

Law = Callable[[float, float], float]
"""The loss of parameters and tokens."""


def training_flops(parameters: float, tokens: float) -> float:
    """6 N D."""
    return FLOPS * parameters * tokens


def allocate(flops: float, ratio: float = TOKENS) -> tuple[float, float]:
    """(N, D) with D = ratio · N that spend exactly this compute: N = √(C / (6 ratio))."""
    if not flops > 0:
        raise Mistake(f"a budget of {flops:g} FLOPs trains nothing; it must be above 0")
    n = math.sqrt(flops / (FLOPS * ratio))
    return n, ratio * n


def required_flops(parameters: float, ratio: float = TOKENS) -> float:
    """What training a model of this size at the optimum costs: 120 N²."""
    return training_flops(parameters, ratio * parameters)


def print_allocation(flops: float) -> tuple[float, float]:
    """VOM 14.7.1 as printed, an erratum: N = 0.7e9 (C / 1e21)^½, D = 20 N. It spends 6% of C."""
    n = 0.7e9 * math.sqrt(flops / 1e21)
    return n, TOKENS * n


def advise(parameters: float, tokens: float) -> str:
    """What to do with a model of this size when there are only so many tokens: VOM 14.6.1."""
    if tokens >= TOKENS * parameters:
        return f"enough data: {tokens / parameters:.3g} tokens for each parameter, {TOKENS:g} are asked for"
    best = tokens / TOKENS
    return (
        f"too little data: {tokens / parameters:.3g} tokens for each parameter instead of {TOKENS:g}; train"
        f" {best:.3g} parameters, or repeat and augment the data, or accept a model that compute alone cannot help"
    )


def optimal_exponent(law: UnifiedLaw | AdditiveLaw) -> float:
    """The a of N_opt ∝ C^a."""
    if isinstance(law, UnifiedLaw):
        return law.d_alpha / (law.n_alpha + law.d_alpha)
    return law.beta / (law.alpha + law.beta)


def optimum(law: UnifiedLaw | AdditiveLaw, flops: float) -> tuple[float, float]:
    """(N, D) of the least loss at this compute, in closed form."""
    a = optimal_exponent(law)
    if isinstance(law, UnifiedLaw):
        gain = math.exp(a * (math.log(law.ratio) + law.ratio * math.log(law.n_scale) - math.log(law.d_scale)))
    else:
        gain = (law.alpha * law.a / (law.beta * law.b)) ** (1 / (law.alpha + law.beta))
    n = gain * (flops / FLOPS) ** a
    return n, flops / (FLOPS * n)


def minimise(law: Law, flops: float) -> tuple[float, float]:
    """(N, D) of the least loss at this compute, by search: for any law."""
    half = math.log(flops / FLOPS) / 2
    best = minimize_scalar(
        lambda n: law(math.exp(n), flops / (FLOPS * math.exp(n))),
        bounds=(0.0, 2 * half),
        method="bounded",
        options={"xatol": 1e-10},
    )
    n = math.exp(best.x)
    return n, flops / (FLOPS * n)


def iso_flop(law: Law, flops: float, sizes: Sequence[float]) -> list[float]:
    """The losses of models of these sizes that all spend the same compute: a valley in log N."""
    return [law(n, flops / (FLOPS * n)) for n in sizes]
