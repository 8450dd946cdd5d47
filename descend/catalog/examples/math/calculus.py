"""Worked examples of the family math: derivatives, gradients, the Jacobian, matrix calculus."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from descend.catalog.examples import Compute, Inputs, real
from descend.ops.math.calculus import (
    chain_rule,
    difference_quotients,
    gain,
    gradient,
    gradient_error,
    jacobian,
    linear_prediction,
    log10_combinations,
    numerical_gradient,
    slope_along,
    steepest,
    steepest_of_linear_budget,
    step_factors,
    sweep,
    walk,
)
from descend.ops.math.matrices import row_view
from descend.ops.math.matrix_calculus import (
    half_squared_residual,
    half_squared_residual_gradient,
    linear,
    norm_gradient,
    quadratic,
    quadratic_gradient,
    squared_norm,
    squared_norm_gradient,
    trace_product,
    twice_symmetric_part,
)
from descend.ops.math.symbolic import X, limit, values
from descend.ops.math.vectors import dot, norm

# One variable


def limit_table(i: Inputs) -> Inputs:
    f = (X**2 - 1) / (X - 1)
    return {"f": values(f, real(i["x"])), "limit": limit(f, 1)}


def quotients(i: Inputs) -> Inputs:
    x, h = real(i["x"]), real(i["h"])
    return {
        "numerator_square": torch.square(x + h),
        "quotient": difference_quotients(torch.square, x, h),
        "derivative": gradient(torch.square, x),
    }


def sine_of_square(i: Inputs) -> Inputs:
    x = real(i["x"])
    slope, _ = chain_rule([torch.square, torch.sin], x)
    measured = numerical_gradient(lambda x: x.square().sin(), x)
    return {"analytic": slope, "finite_difference_6_digits": round(measured.item(), 6)}


def small_steps(i: Inputs) -> Inputs:
    links = [lambda x: 3 * x + 1, torch.square]
    x, dx = real(i["x"]), real(i["dx"])
    (_, u, y), (_, u_new, y_new) = walk(links, x), walk(links, x + dx)
    du_dx, dy_du = step_factors(links, x, dx)
    values_now = {"u": u, "y": y, "u_new": u_new, "y_new": y_new, "dy": y_new - y}
    ratios = {"du_dx": du_dx, "dy_du": dy_du, "dy_dx": du_dx * dy_du}
    return values_now | ratios | {"exact": chain_rule(links, x)[0]}


def amplification(i: Inputs) -> Inputs:
    links = [partial(torch.mul, real(slope)) for slope in i["slopes"]]
    return {"total": chain_rule(links, real(1.0))[0]}


def tiny_network(i: Inputs) -> Inputs:
    """The links from w to y = v σ(wx + b)."""
    w, x, b, v = (real(i[name]) for name in ("w", "x", "b", "v"))
    slope, _ = chain_rule([lambda w: w * x + b, torch.sigmoid, lambda a: v * a], w)
    error = gradient_error(lambda w: v * torch.sigmoid(w * x + b), w, slope)
    return {"relative_difference": error, "dy_dw": slope}


# Many variables


def mf_function(p: Tensor) -> Tensor:
    """x² + xy + 3y²."""
    return p[0] ** 2 + p[0] * p[1] + 3 * p[1] ** 2


def mf_gradient(i: Inputs) -> Inputs:
    return {"grad": gradient(mf_function, real(i["point"]))}


def mf_steepest(i: Inputs) -> Inputs:
    """The 3601 directions are one for each tenth of a degree, of a plane with the given gradient."""
    g = real(i["grad"])
    angles, slopes = sweep(partial(linear, a=g), real([0.0, 0.0]), 3601)
    return {
        "max_directional_derivative": slopes.max(),
        "norm_grad": norm(g),
        "argmax_angle_deg": angles[slopes.argmax()].rad2deg(),
        "grad_angle_deg": torch.atan2(g[1], g[0]).rad2deg(),
    }


def grid_search(i: Inputs) -> Inputs:
    return {"log10_combinations": log10_combinations(i["values"], i["parameters"])}


def partials(i: Inputs) -> Inputs:
    first, origin = (gradient(squared_norm, real(p)) for p in i["points"])
    return {"at_3_4": first, "at_origin": origin}


def slopes_at_3_4(i: Inputs) -> Inputs:
    g = real(i["gradient"])
    terms, _ = row_view(g[None], steepest(g))
    return {
        **{name: slope_along(g, real(u)) for name, u in i["directions"].items()},
        "parts": terms[0],
        "max_slope": norm(g),
        "unit_gradient": steepest(g),
        "descent": -g,
        "normalized_half_half": slope_along(g, real([0.5, 0.5])),
        "normalized_0.1_0.9": slope_along(g, real([0.1, 0.9])),
    }


def budgets(i: Inputs) -> Inputs:
    """From all in y, (0, 1), to the best direction on the circle."""
    g = real(i["gradient"])
    gained, kept = steepest(g)
    return {"given_up": 1 - kept, "gained": gained, "linear_budget_best": steepest_of_linear_budget(g)}


def unit_steps(i: Inputs) -> Inputs:
    p = real(i["from"])
    return {name: gain(squared_norm, p, real(u)) for name, u in i["directions"].items()}


def vom_map(x: Tensor) -> Tensor:
    """(x₁² + x₂, x₁ x₂)."""
    return torch.stack([x[0] ** 2 + x[1], x[0] * x[1]])


def vom_jacobian(i: Inputs) -> Inputs:
    x, dx = real(i["x"]), real(i["dx"])
    predicted, actual = linear_prediction(vom_map, x, dx)
    return {
        "y": vom_map(x),
        "J": jacobian(vom_map, x),
        "predicted": predicted,
        "y_new": vom_map(x + dx),
        "actual": actual,
    }


# Identities


def four_identities(i: Inputs) -> Inputs:
    a, x, big_a, b, w, y = (real(i[name]) for name in ("a", "x", "A", "B", "W", "y"))
    return {
        "grad_linear": gradient(partial(linear, a=a), x),
        "grad_quadratic": gradient(partial(quadratic, a=big_a), x),
        "A_plus_AT_x": quadratic_gradient(x, big_a),
        "grad_trace": gradient(partial(trace_product, b=b), big_a),
        "grad_W": gradient(partial(half_squared_residual, x=x, y=y), w),
        "Wx_minus_y_xT": half_squared_residual_gradient(w, x, y),
    }


def gradient_of_linear(i: Inputs) -> Inputs:
    a = real(i["a"])
    return {"grad": numerical_gradient(partial(linear, a=a), real([0.3, -1.7]))}


def gradient_of_square(i: Inputs) -> Inputs:
    x = real(i["x"])
    return {"f": squared_norm(x), "grad": squared_norm_gradient(x)}


def gradient_of_quadratic(i: Inputs) -> Inputs:
    """`direct` differentiates the expanded form, x₁² + 2 x₁ x₂ + 3 x₂²."""
    a, x = real(i["A"]), real(i["x"])
    return {
        "Ax": row_view(a, x)[1],
        "f": quadratic(x, a),
        "A_plus_AT": twice_symmetric_part(a),
        "grad": quadratic_gradient(x, a),
        "direct": gradient(lambda x: dot(a.flatten(), torch.outer(x, x).flatten()), x),
    }


def gradient_of_norm(i: Inputs) -> Inputs:
    x = real(i["x"])
    return {"norm": norm(x), "grad": norm_gradient(x)}


EXAMPLES: dict[str, Compute] = {
    "VOM-2.1-limit-table": limit_table,
    "VOM-2.2-difference-quotients": quotients,
    "MF-1.2.1-chain-rule": sine_of_square,
    "VOM-2.3-chain-rule": small_steps,
    "VOM-2.3-amplification": amplification,
    "VOM-2.3-tiny-network-gradient": tiny_network,
    "MF-1.2.2-gradient": mf_gradient,
    "MF-1.2.2-steepest": mf_steepest,
    "VOM-2.5.1-grid-search": grid_search,
    "VOM-2.5.3-partials": partials,
    "VOM-2.5.4-directional": slopes_at_3_4,
    "VOM-2.5.4-circular-budget": budgets,
    "VOM-2.5.4-unit-step-gain": unit_steps,
    "VOM-2.5.7-jacobian": vom_jacobian,
    "MF-1.2.3-identities": four_identities,
    "VOM-2.6-linear": gradient_of_linear,
    "VOM-2.6-squared-norm": gradient_of_square,
    "VOM-2.6-quadratic-form": gradient_of_quadratic,
    "VOM-2.6-norm": gradient_of_norm,
}

SET_ASIDE: dict[str, str] = {}
