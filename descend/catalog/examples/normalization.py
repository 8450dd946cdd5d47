"""Worked examples of the family normalization."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from descend.catalog.examples import Compute, Inputs, real
from descend.catalog.systems import examples
from descend.nn.norms import BatchNorm, BatchNormOfDeviation
from descend.ops.normalization import (
    batch_norm,
    group_norm,
    layer_norm,
    layer_norm_outside,
    moments,
    moving,
    rms,
    rms_norm,
    rms_norm_outside,
    scale_and_shift,
    standard_deviation,
)
from descend.theory.signal import grow_signal, risen

# Batch


def batch_train(i: Inputs) -> Inputs:
    z = real(i["z"])
    mu, var = moments(z, (0,))
    return {"mu": mu[0], "var": var[0], "z_hat": batch_norm(z, i["eps"])}


def inference_sign(i: Inputs) -> Inputs:
    var = real(i["sigma_bar_squared"])
    return {"printed_form": standard_deviation(var, -i["eps"]), "right_form": standard_deviation(var, i["eps"])}


def column_of(sigma: float) -> Tensor:
    """Two numbers with this standard deviation, as a batch of one feature."""
    return real([[sigma], [-sigma]])


def running_deviation(i: Inputs) -> Inputs:
    after = {}
    for kind in (BatchNorm, BatchNormOfDeviation):
        layer = kind(1, alpha=i["eta"]).double()
        layer.running_var.fill_(i["start"] ** 2)
        for sigma in i["sigmas"]:
            layer(column_of(sigma))
        after[kind] = layer.running_var[0]
    batch, momentum = real(i["torch_batch"]), i["torch_momentum"]
    ours, theirs = BatchNorm(2, alpha=1 - momentum).double(), nn.BatchNorm1d(2, momentum=momentum).double()
    ours(batch)
    theirs(batch)
    n = len(batch)
    unbiased = moving(torch.ones(2).double(), moments(batch, (0,))[1][0] * n / (n - 1), 1 - momentum)
    return {
        "EMA_sigma_squared_then": after[BatchNormOfDeviation],
        "EMA_of_variance": after[BatchNorm],
        "torch_running_var_after_1_step": theirs.running_var,
        "0.99*1+0.01*biased_var": ours.running_var,
        "0.99*1+0.01*unbiased_var": unbiased,
    }


def mean_and_variance(i: Inputs) -> Inputs:
    z = real(i["z"])
    mu, var = moments(z, (0,))
    squares = (z - mu).square()
    return {
        "sum": mu[0] * len(z),
        "mean": mu[0],
        "squared_deviations": squares,
        "sum_sq": var[0] * len(z),
        "var": var[0],
    }


def normalized_sample(i: Inputs) -> Inputs:
    z, eps = real(i["z"]), i["eps"]
    mu, var = moments(z, (0,))
    z_hat = batch_norm(z[:, None], eps)
    y = scale_and_shift(z_hat, real([i["gamma"]]), real([i["beta"]]))
    return {
        "numerator": (z - mu)[0],
        "var_plus_eps": var[0] + eps,
        "std": standard_deviation(var, eps)[0],
        "zhat": z_hat[0, 0],
        "y": y[0, 0],
        "zhat_all": z_hat[:, 0],
    }


def chapter_6(i: Inputs) -> Inputs:
    """The first neuron of the network of MF 6, whose weights another example holds."""
    net = examples()["MF-6.6-batch-true"].inputs
    z = real(net["W1"])[0] @ real(i["chapter6_X"]) + real(net["b1"])[0]
    mu, var = moments(z, (0,))
    return {"z": z, "mean": mu[0], "var": var[0], "zhat": batch_norm(z[:, None])[:, 0]}


def running(i: Inputs) -> Inputs:
    mu, var, alphas = real(i["mu_B"]), real(i["var_B"]), i["alpha"]
    batch = real(examples()["MF-7.4.2-bn-mean-var"].inputs["z"])[:, None]
    theirs = nn.BatchNorm1d(1, momentum=1 - alphas[0]).double()
    theirs(batch)
    return {
        "mu_run": [moving(real(i["mu_run0"]), mu, a) for a in alphas],
        "var_run": [moving(real(i["var_run0"]), var, a) for a in alphas],
        "torch_momentum_equivalent": [1 - a for a in alphas],
        "torch_uses_unbiased_var": var * len(batch) / (len(batch) - 1),
        "torch_running_mean_after_one_batch": theirs.running_mean,
        "torch_running_var_after_one_batch": theirs.running_var,
    }


def s940_batch(i: Inputs) -> Inputs:
    x = real(i["X"])
    mu, var = moments(x, (0,))
    x_hat = scale_and_shift(batch_norm(x, i["eps"]), real(i["gamma"]).double(), real(i["beta"]).double())
    return {"mu": mu[0], "var": var[0], "xhat": x_hat}


# Layer


def layer_vector(i: Inputs) -> Inputs:
    return {"z_hat": layer_norm(real(i["z"]), i["eps"])}


def mf_layer(i: Inputs) -> Inputs:
    z = real(i["z"])
    return {"y": layer_norm(z, i["eps"]), "torch_layer_norm": nn.LayerNorm(3, eps=i["eps"]).double()(z).detach()}


def s940_layer(i: Inputs) -> Inputs:
    h = real(i["h"])
    mu, var = moments(h, (0,))
    return {"mu": mu[0], "sigma": standard_deviation(var, 0.0)[0], "LN": i["gamma"] * layer_norm(h, 0.0) + i["beta"]}


def drift(i: Inputs) -> Inputs:
    """The rates that the book's means after layers 1 and 10 imply (1 and 5, or 1 and 0.1), carried on to layer 50."""
    first, tenth, last = i["layers"]
    steps, more = tenth - first, last - first
    up, down = (end ** (1 / steps) for end in (5.0, 0.1))
    return {
        "additive_growth_at_50": risen(1.0, (5.0 - 1.0) / steps, more),
        "geometric_growth_at_50": grow_signal(1.0, up, more),
        "geometric_decay_at_50": grow_signal(1.0, down, more),
    }


def vom_layer(i: Inputs) -> Inputs:
    x = real(i["x"])
    mu, var = moments(x, (0,))
    x_hat = layer_norm(x, 0.0)
    return {
        "mu": mu[0],
        "sq_dev": (x - mu).square(),
        "sum_sq": var[0] * len(x),
        "var": var[0],
        "sigma": standard_deviation(var, 0.0)[0],
        "centered": x - mu,
        "xhat": x_hat,
        "mean_xhat": x_hat.mean(),
        "xhat_eps_added_to_sigma": layer_norm_outside(x, i["eps"]),
        "xhat_eps_inside_sqrt_1e-5": layer_norm(x, i["eps"]),
        "xhat_eps_inside_sqrt_1e-6": layer_norm(x, 1e-6),
    }


# Groups and RMS


def group_limits(i: Inputs) -> Inputs:
    """Any numbers show the first one: with G = 1 the two are the same function."""
    x = torch.arange(108.0, dtype=torch.float64).sin().view(i["shape"])
    gap = (group_norm(x, 1) - layer_norm(x, dims=(1, 2, 3))).abs().max()
    return {"G=1_minus_LayerNorm": gap}


def groups_of_32(i: Inputs) -> Inputs:
    """Channels that share a mean: how many equal outputs a step of one channel against zeros reaches."""
    sizes = []
    for channels in i["C"]:
        x = torch.zeros(1, channels, 1)
        x[0, 0] = 1.0
        sizes.append(int((group_norm(x, i["G"]) != 0).sum()))
    return {"channels_per_group_with_G=32": sizes}


def mf_groups(i: Inputs) -> Inputs:
    x = (torch.arange(1, 17, dtype=torch.float64) ** 1.5).view(1, 4, 2, 2)
    return {
        "group_size": [x[0].numel() // groups for groups in i["G"]],
        "G2_first_channel": group_norm(x, 2, i["eps"])[0, 0].flatten(),
    }


def rms_forms(i: Inputs) -> Inputs:
    x, eps = real(i["x"]), i["eps"]
    return {
        "rms": rms(x)[0],
        "t5_form": i["gamma"] * rms_norm_outside(x, eps),
        "llama_form": i["gamma"] * rms_norm(x, eps),
    }


EXAMPLES: dict[str, Compute] = {
    "DLN-BatchNorm-train": batch_train,
    "DLN-BatchNorm-inference-sign": inference_sign,
    "DLN-BatchNorm-EMA": running_deviation,
    "MF-7.4.2-bn-mean-var": mean_and_variance,
    "MF-7.4.2-bn-normalize": normalized_sample,
    "MF-7.4.2-batch-vs-chapter6": chapter_6,
    "MF-14.2.1-running": running,
    "S940-2.4-batchnorm": s940_batch,
    "DLN-LayerNorm-vector": layer_vector,
    "MF-14.3-layernorm": mf_layer,
    "S940-2.4-layernorm": s940_layer,
    "VOM-9.9.4-drift": drift,
    "VOM-9.9.5-layernorm": vom_layer,
    "DLN-GroupNorm-limits": group_limits,
    "DLN-GroupNorm-32": groups_of_32,
    "MF-14.4-groupnorm": mf_groups,
    "MF-36.7-rmsnorm-eps": rms_forms,
}

ROUNDING = "the rounding error against torch, which differs from machine to machine; a test holds them equal"
DRAWN = "the distance between two norms of random numbers, which are not among the inputs"
SET_ASIDE: dict[str, str] = {
    "DLN-BatchNorm-train:max_abs_difference_to_torch": ROUNDING,
    "DLN-LayerNorm-vector:max_abs_difference_to_torch": ROUNDING,
    "DLN-Norm-formulas-CNN": "four rounding errors of 1e-16 against torch; a test holds the forms equal to torch",
    "DLN-GroupNorm-limits:G=C_minus_InstanceNorm": ROUNDING,
    "DLN-GroupNorm-limits:G=1_minus_InstanceNorm": DRAWN,
    "DLN-GroupNorm-limits:G=C_minus_LayerNorm": DRAWN,
    "MF-14.4-groupnorm:max_abs_diff_G1_vs_layernorm": ROUNDING,
    "MF-14.4-groupnorm:max_abs_diff_GC_vs_instancenorm": ROUNDING,
}
