"""Several kinds of data, each with an exponent of its own: how to share the tokens among them.

    L_m(D_m) = E_m + (scale_m / D_m)^α_m        min Σ_m w_m L_m(D_m)   where   Σ_m D_m = D
    at the best mix the next token is worth the same everywhere: w_m α_m scale_m^α_m / D_m^(α_m + 1) = λ

As D grows, the shares go to the modalities with the smallest exponents, whose losses still fall. VOM 14.8.3 says in
words that exponents differ and that a mix must be chosen; the formulas are ours.

Systems: multimodal-scaling
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from scipy.optimize import brentq

from descend.errors import Mistake
from descend.theory.scaling_fit import ScalingFit, fit_floor, fit_power_law
from descend.theory.scaling_laws import PowerLaw


def fit_modalities(
    runs: Mapping[str, Sequence[tuple[float, float]]], floors: Sequence[str] = ()
) -> dict[str, ScalingFit]:
    """The law of each modality from its (tokens, loss) pairs; those named in `floors` are fitted with one."""
    return {
        name: (fit_floor if name in floors else fit_power_law)([d for d, _ in pairs], [loss for _, loss in pairs])
        for name, pairs in runs.items()
    }


def mix(laws: Mapping[str, PowerLaw], weights: Mapping[str, float], tokens: float) -> dict[str, float]:
    """The tokens of each modality that make the weighted loss least."""
    if laws.keys() != weights.keys():
        raise Mistake(f"laws of {', '.join(laws)} and weights of {', '.join(weights)}: name the same modalities")
    if not all(w > 0 for w in weights.values()):
        raise Mistake("every weight must be above 0; leave out what does not count")

    def shares(price: float) -> dict[str, float]:
        """D_m at which the next token is worth e^price."""
        return {
            name: (math.log(weights[name] * law.alpha) + law.alpha * math.log(law.scale) - price) / (law.alpha + 1)
            for name, law in laws.items()
        }

    def excess(price: float) -> float:
        logs = list(shares(price).values())
        top = max(logs)
        return top + math.log(sum(math.exp(v - top) for v in logs)) - math.log(tokens)

    price = brentq(excess, -2000.0, 2000.0, xtol=1e-13)
    return {name: math.exp(value) for name, value in shares(price).items()}


def weighted_loss(laws: Mapping[str, PowerLaw], weights: Mapping[str, float], tokens: Mapping[str, float]) -> float:
    """Σ w_m L_m(D_m)."""
    return sum(weights[name] * law(tokens[name]) for name, law in laws.items())
