"""Worked examples: the power laws themselves, their shapes, floors and intervals."""

from __future__ import annotations

import math

from descend.catalog.examples import Compute, Inputs, real
from descend.metrics.language import perplexity
from descend.theory.law_shapes import compare_steps, power
from descend.theory.scaling_intervals import orders_until, relative_error, vary_exponent
from descend.theory.scaling_laws import (
    HOFFMANN,
    UNITS,
    AdditiveLaw,
    PowerLaw,
    UnifiedLaw,
    convert_compute,
    loss_factor,
)


def percent_less(factor: float) -> float:
    return 100 * (1 - factor)


def orders(i: Inputs) -> Inputs:
    span = lambda low, high: math.log10(i[high] / i[low])
    return {"orders": span("N_min", "N_max"), "orders_data": span("D_min", "D_max")}


def ratios(i: Inputs) -> Inputs:
    found: Inputs = {}
    for alpha in i["alpha_range"]:
        found[f"loss_ratio_for_10x_alpha_{alpha}"] = loss_factor(10, alpha)
        found[f"factor_to_halve_alpha_{alpha}"] = PowerLaw(1.0, alpha).invert(0.5)
    return found


def doubling(i: Inputs) -> Inputs:
    factor = loss_factor(2, i["alpha"])
    less = percent_less(factor)
    return {"factor": 1 / factor, "multiplier": factor, "reduction_percent": less, "rough_percent": less}


def meaning(i: Inputs) -> Inputs:
    law = PowerLaw(i["N_c"], i["alpha_N"])
    return {"L(N_c)": law(i["N_c"]), "L(1000 N_c)": law(1000 * i["N_c"]), "L(1.75e11)": law(1.75e11)}


def doubling_data(i: Inputs) -> Inputs:
    factor = loss_factor(2, i["alpha"])
    return {"reduction_percent": percent_less(factor), "ratio_minus_one_percent": 100 * (1 / factor - 1)}


def ten_times(i: Inputs) -> Inputs:
    factor = loss_factor(10, i["alpha"])
    return {"reduction_percent": percent_less(factor), "ratio_minus_one_percent": 100 * (1 / factor - 1)}


def units(i: Inputs) -> Inputs:
    """The same constant, read in either unit."""
    scale = {unit: convert_compute(i["C_c"], unit) for unit in UNITS}
    losses = {unit: [PowerLaw(c, i["alpha_C"])(flops) for flops in i["C_flops"]] for unit, c in scale.items()}
    return {"C_c_flops": scale["pf-day"], "L_if_flops": losses["flop"], "L_if_PF_days": losses["pf-day"]}


def between(i: Inputs) -> Inputs:
    return {"holds": all(0.05 <= a <= 0.1 for a in i["exponents"])}


def limits(i: Inputs) -> Inputs:
    law = UnifiedLaw(i["N_c"], i["D_c"], i["alpha_N"], i["alpha_D"])
    endless = 1e60
    hold = math.isclose(law(endless, 2e10), law.of_tokens(2e10)) and math.isclose(
        law(1e9, endless), law.of_parameters(1e9)
    )
    at = {f"L({n},{d})": law(float(n), float(d)) for n, d in (("1e9", "2e10"), ("175e9", "300e9"), ("70e9", "1.4e12"))}
    return {"limits_hold": hold, "ratio": law.ratio, **at}


def floor(i: Inputs) -> Inputs:
    first, *others = (perplexity(real([loss])) for loss in i["L_inf"])
    return {"PPL": first, "PPL_range": others}


def additive(i: Inputs) -> Inputs:
    """With the constants of the single laws, which are not fitted for this form."""
    n, d = PowerLaw(8.8e13, 0.076), PowerLaw(5.4e13, 0.095)
    law, joint = AdditiveLaw.join(i["L_inf"], n, d), UnifiedLaw(n.scale, d.scale, n.alpha, d.alpha)
    at = (i["N"], i["D"])
    return {
        "L_inf_small": i["L_inf"] < 0.1 * min(n(i["N"]), d(i["D"])),
        "term_N": n(i["N"]),
        "term_D": d(i["D"]),
        "L_additive": law(*at),
        "L_unified": joint(*at),
        "chinchilla_paper_fit_1.69+406.4/N^.34+410.7/D^.28": HOFFMANN(*at),
    }


PRINTED = (5.01, 3.98, 3.16, 2.51, 2.00)


def table(i: Inputs) -> Inputs:
    """Where the printed losses belong: three orders of magnitude lower, or to a prefactor of about 10^1.3."""
    law = lambda n: power(n, i["a"], i["b"])
    lower = [n / 1000 for n in i["N"]]
    assert all(abs(law(n) - said) < 0.006 for n, said in zip(lower, PRINTED, strict=True))
    return {
        "L": [law(n) for n in i["N"]],
        "N_for_which_printed_values_are_right": lower,
        "L_at_those_N": [law(n) for n in lower],
        "prefactor_that_fits_printed": PRINTED[0] / i["N"][0] ** i["b"],
    }


def improvement(i: Inputs) -> Inputs:
    drops = [a - b for a, b in zip(i["printed"], i["printed"][1:], strict=False)]
    return {"percent": percent_less(loss_factor(10, i["b"])), "first_drop": drops[0], "last_drop": drops[-1]}


def contrast(i: Inputs) -> Inputs:
    absolute, relative = compare_steps(i["pairs"])
    return {"same_in_relative_terms": relative[0] == relative[1], "absolute": absolute, "relative": relative}


def slope(i: Inputs) -> Inputs:
    factor = loss_factor(2, i["alpha"])
    return {"multiplier": factor, "reduction_percent": percent_less(factor)}


def intervals(i: Inputs) -> Inputs:
    middle, low, high = i["alpha"]
    least, at, most = vary_exponent(PowerLaw(i["N_c"], middle), (high - low) / 2, i["N"])
    return {"base": i["N_c"] / i["N"], "L": [at, least, most]}


def uncertainty(i: Inputs) -> Inputs:
    return {
        "exponent_percent": 100 * i["se"] / i["alpha"],
        "loss_percent_at_least": 100 * relative_error(i["se"], 10 ** i["orders"]),
        "loss_percent_at_88": 100 * relative_error(i["se"], i["base"]),
        "orders_needed_for_20_percent": orders_until(0.2, i["se"]),
    }


EXAMPLES: dict[str, Compute] = {
    "VOM-14.1.1-orders": orders,
    "MF-19.1.1-scaling": ratios,
    "VOM-14.1.2-doubling-N": doubling,
    "VOM-14.1.2-Nc-meaning": meaning,
    "VOM-14.1.3-doubling-D": doubling_data,
    "VOM-14.1.4-10x-compute": ten_times,
    "VOM-14.1.4-Cc-units": units,
    "VOM-14.1.5-exponents": between,
    "VOM-14.2-limits": limits,
    "VOM-14.4.1-floor": floor,
    "VOM-14.4.4-additive": additive,
    "VOM-14.4.2-table": table,
    "VOM-14.4.2-improvement": improvement,
    "VOM-14.4.2-linear-contrast": contrast,
    "VOM-14.9.1-slope-0.1": slope,
    "VOM-14.9.6-intervals": intervals,
    "VOM-14.9.6-uncertainty": uncertainty,
}

SET_ASIDE: dict[str, str] = {
    "VOM-14.1.2-gpt4-ratio": "a division of two printed numbers: no law is involved",
}
