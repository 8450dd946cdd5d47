"""Worked examples of performer."""

from __future__ import annotations

from descend.catalog.examples import Compute, Inputs, real
from descend.ops.attention.dot_product import scores
from descend.ops.attention.random_features import (
    positive_variance,
    scale_by_root,
    softmax_kernel,
    trigonometric_variance,
)
from descend.theory.attention_cost import attention_multiplications, performer_multiplications


def favor_scaling(i: Inputs) -> Inputs:
    """The mean of φ(q)·φ(k) is exp(q·k) in closed form; with scaled inputs it is the kernel of attention."""
    q, k = real([i["q"]]), real([i["k"]])
    printed, right = softmax_kernel(q, k)[0, 0], softmax_kernel(scale_by_root(q), scale_by_root(k))[0, 0]
    return {
        "claimed_value": scores(q, k)[0, 0].exp(),
        "expectation_as_printed": printed,
        "exp_qk": printed,
        "expectation_with_inputs_scaled_by_d_minus_quarter": right,
    }


def favor_cost(i: Inputs) -> Inputs:
    cheap, full = performer_multiplications(i["n"], i["m"], i["d"]), attention_multiplications(i["n"], i["d"])
    return {"performer_mults": cheap, "full_mults": full, "ratio": full / cheap}


def feature_variances(i: Inputs) -> Inputs:
    found: Inputs = {}
    for size in ("small", "large"):
        q, k = real(i[f"{size}_kernel_pair"])
        found[f"{size}_kernel_value"] = softmax_kernel(q[None], k[None])[0, 0]
        found[f"var_positive_{size}"] = positive_variance(q, k)
        found[f"var_trig_{size}"] = trigonometric_variance(q, k)
    return found


EXAMPLES: dict[str, Compute] = {
    "S940-6.2-favor-scaling": favor_scaling,
    "S940-6.2-favor-cost": favor_cost,
    "S940-6.2-positive-vs-trig-variance": feature_variances,
}

DRAWN = "an average of 2,000,000 random draws whose generator is not given; the tests compare means with their error"
SET_ASIDE: dict[str, str] = {
    "S940-6.2-favor-scaling:monte_carlo_as_printed": DRAWN,
    "S940-6.2-favor-scaling:monte_carlo_scaled": DRAWN,
}
