"""Worked examples: sharing compute between parameters and tokens, supplies, costs and gains."""

from __future__ import annotations

import math

from descend.catalog.examples import Compute, Inputs
from descend.theory.compute_multiplier import compound
from descend.theory.compute_optimal import (
    TOKENS,
    allocate,
    minimise,
    optimal_exponent,
    print_allocation,
    required_flops,
    training_flops,
)
from descend.theory.data_supply import Supply, check_pools
from descend.theory.emergence import composite
from descend.theory.scaling_laws import UnifiedLaw
from descend.theory.training_cost import (
    factor_for_ratio,
    gpus_needed,
    inference_ratio,
    run_cost,
    share_of_production,
    weight_bytes,
)


def ratio(i: Inputs) -> Inputs:
    flops = required_flops(i["N"], i["tokens_per_parameter"])
    n, d = allocate(flops)
    return {"D": d, "ratio": d / n, "C_flops": flops, "gopher_size_ratio": 280e9 / n}


def best(i: Inputs) -> Inputs:
    found = [allocate(flops) for flops in i["C"]]
    return {"N_star": [n for n, _ in found], "D_star": [d for _, d in found]}


def undertrained(i: Inputs) -> Inputs:
    wanted = TOKENS * i["N"]
    return {
        "D_star": wanted,
        "tokens_per_parameter": i["D_actual"] / i["N"],
        "shortfall_factor": wanted / i["D_actual"],
    }


def roots(i: Inputs) -> Inputs:
    root, (n, d) = math.sqrt(i["C"]), allocate(i["C"])
    return {
        "N_equals_sqrt_C": math.isclose(n, root, rel_tol=0.01),
        "D_equals_sqrt_C": math.isclose(d, root, rel_tol=0.01),
        "sqrt_C": root,
        "six_ND_over_C": training_flops(root, root) / i["C"],
        "N_from_C=6ND_and_D=20N": n,
        "D_from_same": d,
    }


def tokens(i: Inputs) -> Inputs:
    return {"D": [Supply(n, 1.0).wanted for n in i["N"]]}


def gpt3(i: Inputs) -> Inputs:
    each = i["D"] / i["N"]
    return {
        "far_below_20": each < TOKENS / 4,
        "tokens_per_parameter": each,
        "optimal_tokens": Supply(i["N"], i["D"]).wanted,
        "flops_6ND": training_flops(i["N"], i["D"]),
    }


def fewer(i: Inputs) -> Inputs:
    chinchilla, other = required_flops(i["N_chinchilla"]), training_flops(i["N_gpt3"], 300e9)
    return {
        "ratio": i["N_gpt3"] / i["N_chinchilla"],
        "ratio_to_gopher": i["N_gopher"] / i["N_chinchilla"],
        "flops_chinchilla": chinchilla,
        "flops_gpt3": other,
        "compute_ratio": chinchilla / other,
    }


def printed(i: Inputs) -> Inputs:
    n, d = print_allocation(i["C"])
    return {"N": n, "D": d}


def spent(i: Inputs) -> Inputs:
    n, d = allocate(i["C"])
    flops = training_flops(*print_allocation(i["C"]))
    return {
        "six_ND": flops,
        "fraction_of_budget": flops / i["C"],
        "N_consistent": n,
        "D_consistent": d,
        "prefactor_consistent_at_1e21": allocate(1e21)[0],
    }


def exponent(i: Inputs) -> Inputs:
    """The slope of log N_opt between the two budgets, by search; α_C / α_N is Kaplan's other estimate."""
    law = UnifiedLaw(i["N_c"], i["D_c"], i["alpha_N"], i["alpha_D"])
    low, high = (minimise(law, flops)[0] for flops in i["C"])
    return {
        "a_from_formula": optimal_exponent(law),
        "a_numeric": math.log(high / low) / math.log(i["C"][1] / i["C"][0]),
        "a_from_alphaC_over_alphaN": 0.05 / i["alpha_N"],
        "N_opt_at_1e23": minimise(law, 1e23)[0],
    }


def twenty(i: Inputs) -> Inputs:
    (low, _), (high, _) = (allocate(flops) for flops in i["C"])
    return {"a": math.log(high / low) / math.log(i["C"][1] / i["C"][0])}


def three_steps(i: Inputs) -> Inputs:
    return {"percent": [100 * composite(p, i["k"]) for p in i["p"]]}


def pools(i: Inputs) -> Inputs:
    parts = [tuple(i["web_T"]), (i["books_T"], i["books_T"])]
    return {
        "total_at_least_web": check_pools(parts, tuple(i["total_T"])),
        "chinchilla_max_params_for_total": [Supply(1.0, 1e12 * t).largest for t in i["total_T"]],
        "one_trillion_model_needs_T": Supply(1e12, 1.0).wanted / 1e12,
    }


def gpt4(i: Inputs) -> Inputs:
    cost = run_cost(i["gpus"], i["days"], i["usd_per_hour"])
    return {"exceeds_100M": cost > 100e6, "usd": cost}


def share(i: Inputs) -> Inputs:
    return {
        "low_percent": 100 * share_of_production(i["gpus"], i["per_year"]),
        "gpus_at_10_percent": i["per_year"] // 10,
    }


def memory(i: Inputs) -> Inputs:
    needed = gpus_needed(i["params"], i["bytes"], 1e9 * i["GB"])
    return {
        "fits_one_gpu": needed <= 1,
        "gpus_for_weights_only": weight_bytes(i["params"], i["bytes"]) / (1e9 * i["GB"]),
    }


def hundredfold(i: Inputs) -> Inputs:
    """At one price of a GPU-hour, cost is in proportion to compute."""
    return {"usd": [run_cost(i["factor"], 1 / 24, usd) for usd in i["usd"]]}


def halving(i: Inputs) -> Inputs:
    return {"factor": factor_for_ratio(0.5, i["alpha_C"])}


def gains(i: Inputs) -> Inputs:
    return {"percent": 100 * compound(i["gains"])}


def distilled(i: Inputs) -> Inputs:
    return {"ratio": inference_ratio(*i["N"])}


EXAMPLES: dict[str, Compute] = {
    "S940-12.3-chinchilla-ratio": ratio,
    "S940-12.3-compute-optimal": best,
    "S940-12.3-gpt3-undertrained": undertrained,
    "VOM-14.3.1-sqrt": roots,
    "VOM-14.3.2-tokens": tokens,
    "VOM-14.3.2-gpt3-ratio": gpt3,
    "VOM-14.3.2-4x-fewer": fewer,
    "VOM-14.7.1-nopt-example": printed,
    "VOM-14.7.1-nopt-prefactor": spent,
    "VOM-14.9.4-exponent": exponent,
    "VOM-14.9.4-20-tokens": twenty,
    "VOM-14.5.2-composite": three_steps,
    "VOM-14.6.1-pools": pools,
    "VOM-14.6.2-gpt4-cost": gpt4,
    "VOM-14.6.2-gpu-share": share,
    "VOM-14.6.2-memory": memory,
    "VOM-14.6.3-100x": hundredfold,
    "VOM-14.6.3-halving": halving,
    "VOM-14.8.2-compound": gains,
    "VOM-14.8.2-distill": distilled,
}

SET_ASIDE: dict[str, str] = {
    "VOM-14.9.4-exponent:a_numeric": "given to four digits only; tests/theory/test_compute_optimal.py compares them",
    "VOM-14.9.4-exponent:N_opt_at_1e23": "given to four digits only; the same test compares them",
}
