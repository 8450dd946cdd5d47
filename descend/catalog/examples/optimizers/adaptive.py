"""Worked examples of gains, Rprop, the adaptive methods and Lion."""

from __future__ import annotations

from itertools import accumulate
from operator import mul

import torch

from descend.catalog.examples import Compute, Inputs, real
from descend.catalog.examples.optimizers._follow import dld_bowl, feed_gradients, follow, steps_of
from descend.contracts import Rule
from descend.optim.adaptive import UncorrectedAdam
from descend.optim.book_rules import AdagradInside, AdamInside, Lion, LocalGains, PlainRprop, RMSPropInside
from descend.optim.gains import PlainRprop as RpropOptimizer
from descend.optim.rules import SGD, Adadelta, Adam, AdamL2, AdamW, RMSprop, UnscaledAdamW
from descend.optim.trajectory import trajectory


def gains(i: Inputs) -> Inputs:
    gradients = [1.0, *accumulate(i["sign_of_gradient_products"], mul)]
    states = [state["gain"][0].item() for _, state in feed_gradients(LocalGains(), 0.0, gradients)]
    assert states[0] == i["g0"]
    return {"gains": states[1:]}


def rprop(i: Inputs) -> Inputs:
    g = i["gradients"]
    constant = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
    still = RpropOptimizer([constant], i["initial_step"], (1.0, 1.0))
    for value in g:
        constant.grad = real([value])
        still.step()
    moves = [-step for step in steps_of(PlainRprop(i["initial_step"]), g)]
    return {
        "average_gradient": sum(g) / len(g),
        "decrements": sum(bool(move < 0) for move in moves),
        "increments": sum(bool(move > 0) for move in moves),
        "net_move_with_1.2_0.5_rule": sum(moves),
        "net_move_with_constant_step": constant.detach()[0],
    }


def adagrad(i: Inputs) -> Inputs:
    steps = steps_of(AdagradInside(i["alpha"], i["eps"]), [i["g"]] * max(i["t"]))
    return {"effective_rate": [steps[t - 1] / i["g"] for t in i["t"]]}


def rmsprop_eps(i: Inputs) -> Inputs:
    settings = i["alpha"], i["gamma"], i["eps"]
    (inside,), (outside,) = (steps_of(rule(*settings), [i["g"]]) for rule in (RMSPropInside, RMSprop))
    return {"step_seed": inside, "step_eps_outside": outside, "step_torch": outside}


def rmsprop(i: Inputs) -> Inputs:
    rule = RMSPropInside(i["eta"], i["rho"], i["eps"])
    small = [i["small_gradient"]]
    (inside,), (outside,) = (
        steps_of(kind(i["eta"], i["rho"], i["large_eps"]), small) for kind in (RMSPropInside, RMSprop)
    )
    return {
        "theta": [theta for theta, _ in feed_gradients(rule, [0.0, 0.0], [i["grad_constant"]] * i["steps"])],
        "step_inside": inside,
        "step_outside": outside,
    }


def adadelta(i: Inputs) -> Inputs:
    path = follow(Adadelta(1.0, i["gamma"], i["eps"]), lambda t: (t**2).sum(), [i["theta0"]], 5).theta[1:, 0]
    return {"theta": path, "torch_lr_1": path}


def moments(rule: Adam, gradients: list[float]) -> list[tuple[float, float, float]]:
    """m, v and θ after each gradient, from θ = 0."""
    found = feed_gradients(rule, 0.0, gradients)
    return [(float(state["exp_avg"]), float(state["exp_avg_sq"]), float(theta)) for theta, state in found]


def bias_correction(i: Inputs) -> Inputs:
    rule, g = Adam(betas=(i["beta1"], i["beta2"])), 3.0
    weights = moments(rule, [1.0] * 1000)  # the sums of the weights: m and v of a constant gradient of 1
    m, v, _ = moments(rule, [g])[0]
    return {
        "m1_over_g": m / g,
        "v1_over_g2": v / g**2,
        "mhat1_over_g": m / weights[0][0] / g,
        "vhat1_over_g2": v / weights[0][1] / g**2,
        "correction_factors_t_1_10_100_1000": [
            [1 / weights[t - 1][0], 1 / weights[t - 1][1]] for t in (1, 10, 100, 1000)
        ],
    }


def step_size(i: Inputs) -> Inputs:
    g, n = i["constant_g"], i["steps"]
    alternating = [g * (-1) ** k for k in range(n)]
    return {
        "step_constant_t20": steps_of(Adam(i["alpha"]), [g] * n)[-1],
        "abs_step_alternating_t20": steps_of(Adam(i["alpha"]), alternating)[-1].abs(),
    }


def memory(i: Inputs) -> Inputs:
    rules: dict[str, Rule] = {"sgd": SGD(momentum=0.0), "sgd_momentum": SGD(), "adam": Adam(), "lion": Lion()}
    return {name: 1 + len(next(feed_gradients(rules[name], [1.0, 2.0], [[1.0, 1.0]]))[1]) for name in i["optimizers"]}


def eps_placement(i: Inputs) -> Inputs:
    inside, outside = ([steps_of(rule(i["eta"], eps=i["eps"]), [g])[0] for g in i["g"]] for rule in (AdamInside, Adam))
    return {"eps_inside_sqrt": inside, "eps_outside_sqrt": outside, "torch_adam": outside}


def s940_adam(i: Inputs) -> Inputs:
    betas, eta, eps = (i["beta1"], i["beta2"]), i["eta"], i["eps"]
    rule = Adam(eta, betas, eps)
    m, v, _ = moments(rule, [1.0])[0]
    one = torch.zeros(1, dtype=torch.float64)
    plain = trajectory(lambda p: UncorrectedAdam(p, eta, betas, eps), lambda t: t.sum(), one, 1).theta[-1]
    return {
        "theta": follow(rule, dld_bowl, i["theta0"], i["steps"]).theta[1:],
        "m1_without_correction_for_unit_gradient": m,
        "v1_without_correction_for_unit_gradient": v,
        "first_step_with_correction": steps_of(rule, [1.0])[0],
        "first_step_without_correction": -plain[0],
    }


def numerator(i: Inputs) -> Inputs:
    return {"first_step": steps_of(Adam(i["eta"], (i["beta1"], i["beta2"]), i["eps"]), [i["g"]])[0]}


def transformer_settings(i: Inputs) -> Inputs:
    rule = Adam(i["lr"], (0.9, 0.98), 1e-9)
    weights, rows, theta = moments(rule, [1.0] * len(i["grads"])), [], i["theta0"]
    for (m, v, moved), (of_m, of_v, _) in zip(moments(rule, i["grads"]), weights, strict=True):
        mhat, vhat = m / of_m, v / of_v
        theta -= i["lr"] * mhat / (vhat**0.5 + 1e-9)
        rows.append([m, v, mhat, vhat, i["theta0"] + moved])
    return {"rule_equals_torch": abs(theta - rows[-1][-1]) < 1e-12, "m_v_mhat_vhat_theta_per_step": rows}


def adam_l2(i: Inputs) -> Inputs:
    after = next(feed_gradients(AdamL2(i["alpha"], weight_decay=i["lambda"]), i["theta"], [i["grad"]]))[0][0]
    other = next(feed_gradients(AdamL2(i["alpha"], weight_decay=0.0), i["theta"], [i["grad"]]))[0][0]
    assert abs(after - other) < 1e-9
    return {
        "theta_after": after,
        "torch": after,
        "note_value_of_first_step_does_not_depend_on_lambda": round(float(i["theta"] - after), 9),
    }


def two_forms(i: Inputs) -> Inputs:
    first, second = (
        next(feed_gradients(rule(i["alpha"], weight_decay=i["lambda"]), i["theta"], [i["g"]]))[0][0]
        for rule in (UnscaledAdamW, AdamW)
    )
    return {"form1": first, "form2": second, "torch_AdamW": second}


def mf_adamw(i: Inputs) -> Inputs:
    ours, theirs = (
        next(feed_gradients(rule(i["eta"], eps=i["eps"], weight_decay=i["lambda"]), i["theta"], [i["g"]]))[0]
        for rule in (AdamInside, AdamW)
    )
    return {"theta_1_printed_form": ours[0], "theta_1_torch": theirs}


def lion(i: Inputs) -> Inputs:
    """m is built by one step with g = m / (1 − β₂); c = m + (g − m)(1 − β₁) shows in m of a Lion with β₂ = β₁."""
    b1, b2, m, g = i["beta1"], i["beta2"], real(i["m"]), i["g"]

    def last(rule: Lion, theta: list[float]) -> tuple[torch.Tensor, torch.Tensor]:
        scale = 1 - rule.betas[1]
        warm, _ = next(feed_gradients(rule, theta, [(m / scale).tolist()]))
        moved, state = list(feed_gradients(rule, theta, [(m / scale).tolist(), g]))[-1]
        return moved - warm, state["m"]

    rate = i["eta"]
    step, after = last(Lion(rate, (b1, b2), 0.0), [0.0] * 3)
    _, c = last(Lion(rate, (b1, b1), 0.0), [0.0] * 3)
    # Start one step back, so that θ is that of the example when the second step begins: the decay acts on it.
    back = (real(i["theta"]) + rate * m.sign()) / (1 - rate * i["lambda"])
    moved, _ = last(Lion(rate, (b1, b2), i["lambda"]), back.tolist())
    return {
        "c": c,
        "sign": (-step / rate).round(),
        "theta_after": real(i["theta"]) + moved,
        "m_after": after,
        "update_L2_norm_without_decay": step.norm(),
    }


EXAMPLES: dict[str, Compute] = {
    "DLN-LocalGain": gains,
    "DLN-Rprop-minibatch": rprop,
    "DLN-Adagrad-decay": adagrad,
    "DLN-RMSProp-eps": rmsprop_eps,
    "S940-2.2-rmsprop": rmsprop,
    "DLN-Adadelta-trajectory": adadelta,
    "DLN-Adam-bias-correction": bias_correction,
    "DLN-Adam-step-size": step_size,
    "DLN-Adam-memory": memory,
    "MF-8.3.2-adam-eps": eps_placement,
    "S940-2.2-adam": s940_adam,
    "VOM-5.5.3-adam-numerator": numerator,
    "VOM-12.5-adam": transformer_settings,
    "DLN-Adam-L2": adam_l2,
    "DLN-AdamW-two-forms": two_forms,
    "MF-8.3.3-adamw": mf_adamw,
    "DLN-Lion-step": lion,
}
SET_ASIDE: dict[str, str] = {}
