"""Worked examples of the family perceptron-mlp: neurons, the perceptron, linear stacks, kernels, lifted features."""

from __future__ import annotations

import torch
from torch import Tensor

from descend.catalog.examples import Compute, Inputs, real
from descend.classic.kernel import polynomial, polynomial_features
from descend.classic.perceptron import Learned, learn, learn_through_origin
from descend.ops.dense import collapse, decision_line, dense, dense_columns, half_space, neuron, terms
from descend.ops.lifting import (
    STEP_WEIGHTS,
    XOR_CORNERS,
    density_scores,
    feature_map,
    lift,
    xor_network,
    xor_of_relus,
    xor_of_steps,
)
from descend.theory.perceptron import (
    bound,
    bound_through_origin,
    fewest_errors,
    margin,
    radius,
    separable,
    signed_distance,
)

# Neurons


def vectorized_layers(i: Inputs) -> Inputs:
    z1 = dense_columns(real(i["W1"]), real(i["b1"]), real(i["X"]))
    z2 = dense_columns(real(i["W2"]), real([i["b2"]]), z1.relu())
    return {"Z1_columns_1_2": z1[:, :2].T, "Z2_1_2": z2[0, :2], "Z1": z1, "Z2": z2, "Yhat": z2.sigmoid()}


def line(i: Inputs) -> Inputs:
    w, b = real(i["w"]), real(i["b"])
    slope, intercept = decision_line(w, b)
    above = torch.stack([real(0.0), intercept + 1])
    return {
        "slope": slope,
        "intercept": intercept,
        "w_dot_line_direction": w @ torch.stack([real(1.0), slope]),
        "sign_above": half_space(above, w, b),
    }


def one_neuron(i: Inputs) -> Inputs:
    x, w, b = real(i["x"]), real(i["w"]), real(i["b"])
    return {
        "terms": terms(x, w),
        "z": neuron(x, w, b, lambda z: z),
        "exp_minus_z": neuron(x, w, b, lambda z: (-z).exp()),
        "y": neuron(x, w, b, torch.sigmoid),
    }


# The perceptron


def and_and_xor(i: Inputs) -> Inputs:
    x = real(i["X"])

    def describe(run: Learned) -> Inputs:
        return {
            "converged": run.converged,
            "epochs": run.epochs,
            "updates": run.updates,
            "best_errors": run.best_errors,
        }

    conjunction, exclusive = learn(x, real(i["y_and"])), learn(x, real(i["y_xor"]))
    return {
        "AND": describe(conjunction) | {"w": conjunction.w},
        "XOR": describe(exclusive),
        "best_possible_errors_on_XOR": fewest_errors(x, real(i["y_xor"])),
    }


def distance(i: Inputs) -> Inputs:
    w, b, x = real(i["w"]), real(i["b"]), real(i["x"])
    foot = x - signed_distance(x, w, b) * w / w.norm()  # x_0, the nearest point of the hyperplane
    return {
        "distance": signed_distance(x, w, b),
        "projection": w / w.norm() @ (x - foot),
        "distance_scaled_parameters": signed_distance(x, i["alpha"] * w, i["alpha"] * b),
    }


def learned_bias(i: Inputs) -> Inputs:
    x, y, w, b = real(i["x"])[:, None], real(i["y"]), real([i["w_star"]]), real(i["b_star"])
    run, r, gamma = learn(x, y, i["eta"]), radius(x), margin(x, y, w, b)
    return {
        "mistakes": run.updates,
        "R": r,
        "gamma": gamma,
        "printed_bound_R2_over_gamma2": (r / gamma) ** 2,
        "final_w": run.w[0],
        "final_b": run.w[1],
        "augmented_bound": bound(x, y, w, b),
    }


def no_bias(i: Inputs) -> Inputs:
    x, y, w = real(i["x"]), real(i["y"]), real(i["w_star_direction"])
    run = learn_through_origin(x, y)
    return {
        "mistakes": run.updates,
        "R": radius(x),
        "gamma": margin(x, y, w, real(0.0)),
        "bound": bound_through_origin(x, y, w),
        "final_w": run.w,
    }


def xor_inseparable(i: Inputs) -> Inputs:
    x, y = real(i["corners"]), 2 * real(i["labels"]) - 1
    return {"separable": separable(x, y), "best_linear_accuracy_on_grid": 1 - fewest_errors(x, y) / len(y)}


def xor_units(i: Inputs) -> Inputs:
    x = real(i["corners"])
    assert x.tolist() == real(XOR_CORNERS).tolist()
    return {
        "output": xor_network(x, torch.relu, STEP_WEIGHTS),
        "output_with_step_units": xor_of_steps(x),
        "output_relu_with_weights_2_2_-4": xor_of_relus(x),
    }


# Stacks of linear layers


def two_layers(i: Inputs) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Layer by layer, by the collapsed map, and its W and b."""
    w1, w2, x = (real(i[name]) for name in ("W1", "W2", "x"))
    b1, b2 = real(i.get("b1", [0.0] * len(w1))), real(i.get("b2", [0.0] * len(w2)))
    w, b = collapse([(w1, b1), (w2, b2)])
    return dense(w2, b2, dense(w1, b1, x)), dense(w, b, x), w, b


def mf_collapse(i: Inputs) -> Inputs:
    each, at_once, w, b = two_layers(i)
    return {"W_eff": w, "b_eff": b, "layerwise": each, "effective": at_once}


def s940_collapse(i: Inputs) -> Inputs:
    each, at_once, w, b = two_layers(i)
    return {"two_layers": each, "collapsed": at_once, "W": w, "b": b}


def vom_collapse(i: Inputs) -> Inputs:
    each, at_once, _, _ = two_layers(i)
    return {"equal": bool(torch.allclose(each, at_once)), "y": at_once}


# Kernels and lifted features


def polynomial_kernel(i: Inputs) -> Inputs:
    x, z = real([i["x"]]), real([i["z"]])
    phi = polynomial_features(x, 2) @ polynomial_features(z, 2).T
    return {"K": polynomial(2)(x, z)[0, 0], "Phi_dot_Phi": phi[0, 0]}


def density(i: Inputs) -> Inputs:
    diagonal, off = density_scores(real([i["diagonal_part"], i["off_diagonal_part"]]))
    return {
        "defects_get_high_defect_probability": bool(diagonal[1] > off[1]),
        "diagonal_part_quality_defect": diagonal,
        "off_diagonal_part_quality_defect": off,
    }


def factory_map(i: Inputs) -> Inputs:
    points = {"f(1,1)": [1, 1], "f(2.5,1)": [2.5, 1], "f(1,2.5)": [1, 2.5], "f(2,2)": [2, 2]}
    found = {name: feature_map(real([point]))[0] for name, point in points.items()}
    threshold = real(1.1)
    sides = [half_space(found[name], real([0.0, 1.0]), -threshold) for name in ("f(1,1)", "f(2.5,1)")]
    separates = bool(sides[0] > 0 > sides[1])
    return {**found, "threshold_B": threshold, "B_separates_(1,1)_from_(2.5,1)": separates}


def third_unit(_: Inputs) -> Inputs:
    line_ = torch.arange(0, 8.25, 0.25, dtype=torch.float64)
    parts = torch.cartesian_prod(line_, line_)
    fires = lift(parts, real([[-0.5, 0.5]]), real([1.5]))[:, 0] > 0
    return {"equivalent": bool((fires == (parts[:, 1] > parts[:, 0] - 3)).all())}


def figure_threshold(i: Inputs) -> Inputs:
    b = real(i["good_B"] + i["defective_B"])[:, None]
    y = real([-1.0] * len(i["good_B"]) + [1.0] * len(i["defective_B"]))
    return {"separated": bool(margin(b, y, real([1.0]), -real(i["threshold"])) > 0)}


EXAMPLES: dict[str, Compute] = {
    "MF-7.6-vectorized": vectorized_layers,
    "VOM-5.1-decision-line": line,
    "VOM-5.1-neuron": one_neuron,
    "S940-1.1-perceptron-and-xor": and_and_xor,
    "MF-2.2-signed-distance": distance,
    "MF-2.4.2-bound-symmetric": learned_bias,
    "MF-2.4.2-bound-offset": learned_bias,
    "MF-2.4.2-bound-no-bias": no_bias,
    "VOM-9.8.1-xor-inseparable": xor_inseparable,
    "VOM-9.8.5-xor-units": xor_units,
    "MF-3.3.1-linear-collapse": mf_collapse,
    "S940-1.2-linear-collapse": s940_collapse,
    "VOM-9.8.1-linear-collapse": vom_collapse,
    "DLN-Kernel-polynomial": polynomial_kernel,
    "VOM-9.8.9-density-scores": density,
    "VOM-9.8.13-feature-map": factory_map,
    "VOM-9.8.13-h3-support": third_unit,
    "VOM-9.8.13-figure-threshold": figure_threshold,
}

SET_ASIDE: dict[str, str] = {}
