"""Worked examples of the family flows."""

from __future__ import annotations

import itertools
import math

import numpy as np
import torch
from torch import Tensor, nn

from descend.catalog.examples import Compute, Inputs, real
from descend.losses.flow_matching import conditional_path
from descend.nn.flow.autoregressive import InverseAutoregressive, MaskedAutoregressive
from descend.nn.flow.bijection import Bijection, Moved, standard_normal
from descend.nn.flow.continuous import ContinuousFlow
from descend.nn.flow.coupling import Conditioner, Coupling
from descend.nn.flow.linear import ElementwiseAffine, fold_linear
from descend.nn.flow.made import MADE
from descend.nn.flow.ode_block import ODEBlock
from descend.nn.flow.transforms import Affine
from descend.ops.ode.divergence import estimate_divergence, pull_back
from descend.ops.ode.solve import odeint
from descend.ops.ode.solver import Solver

FINE = Solver(rtol=1e-10, atol=1e-12)
UNNAMED = "the inputs give a seed and sizes but not the layers; the identity is tested on layers of our own"


class Exponential(Bijection):
    """x = e^z"""

    def forward(self, z: Tensor) -> Moved:
        return z.exp(), z.sum(1)

    def inverse(self, x: Tensor) -> Moved:
        return x.log(), -x.log().sum(1)


class Linear(nn.Module):
    """f(z) = A z"""

    def __init__(self, a: Tensor):
        super().__init__()
        self.a = a

    def forward(self, z: Tensor, t: float = 0.0) -> Tensor:
        return z @ self.a.T


def exponential(i: Inputs) -> Inputs:
    x = real([[i["x"]]])
    z, log_det = Exponential().inverse(x)
    return {
        "formula": (standard_normal(z) + log_det).exp()[0],
        "lognormal": torch.distributions.LogNormal(real(0.0), real(1.0)).log_prob(x).exp()[0, 0],
    }


def linear_closed(i: Inputs) -> Inputs:
    layers = [ElementwiseAffine(1).double() for _ in range(2)]
    with torch.no_grad():
        for layer, name in zip(layers, ("layer_1", "layer_2"), strict=True):
            layer.a.fill_(i[name][0])
            layer.b.fill_(i[name][1])
    a, b = fold_linear(layers, 1)
    return {"a": a[0, 0], "b": b[0]}


def draw_weights(module: nn.Module, seed: int) -> nn.Module:
    """Random weights in float64, so that no layer is near the identity."""
    random = torch.Generator().manual_seed(seed)
    for p in module.double().parameters():
        p.data = torch.randn(p.shape, generator=random, dtype=torch.float64) / max(p.shape[-1], 1) ** 0.5
    return module


def coupling_jacobian(i: Inputs) -> Inputs:
    size, d = i["D"], i["d"]
    layer = Coupling(size, range(d), Conditioner(d, size - d, 2, 8, 1), Affine())
    draw_weights(layer, i["seed"])
    x = torch.randn(1, size, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    z, _ = layer.inverse(x)
    jacobian = torch.autograd.functional.jacobian(lambda x: layer.inverse(x)[0].sum(0), x)[:, 0]
    return {
        "roundtrip_error_below_1e-12": bool((layer(z)[0] - x).abs().max() < 1e-12),
        "upper_right_block_zero": bool((jacobian[:d, d:] == 0).all()),
    }


def batch_loss(i: Inputs) -> Inputs:
    z = real(i["z"])
    constant = standard_normal(torch.zeros_like(z)[None])[0]
    return {
        "minus_half_norm_squared": standard_normal(z[None])[0] - constant,
        "minus_half_z_is_a_vector": -z / 2,
        "const_dropped": constant,
    }


def triangular(i: Inputs) -> Inputs:
    size = i["D"]
    layer = MaskedAutoregressive(MADE(range(1, size + 1), 2, 24, 1), Affine())
    draw_weights(layer, i["seed"])
    x = torch.randn(1, size, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    jacobian = torch.autograd.functional.jacobian(lambda x: layer.inverse(x)[0].sum(0), x)[:, 0]
    log_det = layer.inverse(x)[1][0]
    return {
        "max_above_diagonal": jacobian.triu(1).abs().max(),
        "max_below_diagonal_nonzero": bool(jacobian.tril(-1).abs().max() > 0),
        "logdet_equals_log_diagonal": bool((log_det - jacobian.diagonal().abs().log().sum()).abs() < 1e-10),
    }


def passes(i: Inputs) -> Inputs:
    """Calls of the masked network, by a hook."""
    size, found = i["D"], {}
    z = torch.randn(3, size, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    recovered = True
    for name, kind in (("MAF", MaskedAutoregressive), ("IAF", InverseAutoregressive)):
        calls: list[int] = []
        made = MADE(range(1, size + 1), 2, 24, 1)
        layer = kind(made, Affine())
        draw_weights(layer, 0)
        made.register_forward_hook(lambda *_, calls=calls: calls.append(1))
        x, _ = layer(z)
        found[f"{name}_sampling"] = len(calls)
        back, _ = layer.inverse(x)
        found[f"{name}_density"] = len(calls) - found[f"{name}_sampling"]
        recovered &= bool((back - z).abs().max() < 1e-9)
    return {**found, "sequential_sampling_recovers_x": recovered}


def initial_value(i: Inputs) -> Inputs:
    start = real([[float(i["z0"])]])
    end = ODEBlock(Linear(real([[-1.0]])), FINE, float(i["T"]))(start)
    return {
        "printed_formula": (end - start)[0, 0],
        "with_z0": end[0, 0],
        "exact": math.exp(-i["T"]) * i["z0"],
    }


def euler(i: Inputs) -> Inputs:
    start, end = real([float(i["z0"])]), float(i["T"])
    errors = []
    for n in i["steps"]:
        found = odeint(lambda t, z: -z, start, [end * k / n for k in range(n + 1)], "euler")
        errors.append(abs(found.last.item() - math.exp(-end) * i["z0"]))
    return {"errors": errors, "ratio_when_halving": [a / b for a, b in itertools.pairwise(errors)]}


def adaptive(i: Inputs) -> Inputs:
    """The decay with a burst of the inputs, from z(0) = 1 over 0..1; errors against its integral in closed form."""
    slope = lambda t, z: -z * (1 + 20 * math.exp(-(((t - 0.3) / 0.05) ** 2)))
    one = real([1.0])
    found = odeint(slope, one, [0.0, 1.0], rtol=i["rtol"], atol=i["atol"])
    n = found.evaluations
    plain = odeint(slope, one, [k / n for k in range(n + 1)], "euler")
    burst = 20 * 0.05 * math.sqrt(math.pi) / 2 * (math.erf(0.7 / 0.05) + math.erf(0.3 / 0.05))
    exact, lengths = math.exp(-1 - burst), np.diff(found.points)
    return {
        "function_evaluations": n,
        "min_step": float(lengths.min()),
        "max_step": float(lengths.max()),
        "error_dormand_prince": abs(found.last.item() - exact),
        "error_euler": abs(plain.last.item() - exact),
    }


def linear_trace(i: Inputs) -> Inputs:
    a, end = real(i["A"]), float(i["T"])
    _, log_det = ContinuousFlow(Linear(a), FINE).flow(torch.zeros(1, 3, dtype=torch.float64), 0.0, end, None)
    return {
        "minus_T_trace": -log_det[0],
        "minus_logdet_expm": -torch.linalg.slogdet(torch.linalg.matrix_exp(end * a)).logabsdet,
    }


def unbiased(i: Inputs) -> Inputs:
    a = real(i["A"])
    signs = real(list(itertools.product((-1.0, 1.0), repeat=len(a))))
    estimates = estimate_divergence(Linear(a), torch.zeros_like(signs), signs)[1]
    return {
        "rademacher_mean": estimates.mean(),
        "trace": a.trace(),
        "variance_rademacher": estimates.var(correction=0),
        "variance_gaussian": 2 * ((a + a.T) / 2).square().sum(),
    }


def reverse_pass(i: Inputs) -> Inputs:
    a, eps = real(i["A"]), real(i["eps"])
    z = torch.zeros(1, 3, dtype=torch.float64, requires_grad=True)
    return {
        "reverse_mode_result": pull_back(Linear(a)(z), z, eps[None], False)[0],
        "A_eps": a @ eps,
        "AT_eps": a.T @ eps,
        "eps_A_eps": estimate_divergence(Linear(a), z, eps[None])[1][0].detach(),
    }


def straight_path(i: Inputs) -> Inputs:
    x0, x1, t = (real([i[name]]) for name in ("x0_noise", "x1_data", "t"))
    x, u = conditional_path(x0[:, None], x1[:, None], t)
    ahead, behind = (conditional_path(x0[:, None], x1[:, None], t + h)[0] for h in (1e-4, -1e-4))
    return {"x_t": x[0, 0], "velocity": u[0, 0], "finite_difference": (ahead - behind)[0, 0] / 2e-4}


EXAMPLES: dict[str, Compute] = {
    "DLN-NF-change-of-variables": exponential,
    "DLN-NF-linear-closed": linear_closed,
    "DLN-RealNVP-jacobian": coupling_jacobian,
    "DLN-RealNVP-batch-loss": batch_loss,
    "DLN-MAF-triangular": triangular,
    "DLN-MAF-IAF-passes": passes,
    "DLN-NeuralODE-initial-value": initial_value,
    "DLN-NeuralODE-euler": euler,
    "DLN-NeuralODE-adaptive": adaptive,
    "DLN-CNF-trace": linear_trace,
    "DLN-Hutchinson-unbiased": unbiased,
    "DLN-Hutchinson-vjp": reverse_pass,
    "DLN-FlowMatching-placeholder": straight_path,
}
SET_ASIDE = {
    "DLN-NF-composition": UNNAMED,
    "DLN-RealNVP-jacobian:slogdet": UNNAMED,
    "DLN-RealNVP-jacobian:minus_sum_s": UNNAMED,
}
