"""Worked examples of the family systems."""

from __future__ import annotations

import torch

from descend.catalog.examples import Compute, Inputs, real
from descend.catalog.references import references
from descend.data.streams.arrays import Shuffled
from descend.data.streams.mixture import check_shares
from descend.metrics.classification import top_k
from descend.metrics.frechet import fid, frechet_distance, moments_of
from descend.nn.attention.shards import heads_of
from descend.optim.scaling import largest_loss, lost_below, smallest_subnormal, through_half


def random_guess(i: Inputs) -> Inputs:
    """One fixed guess, with every class equally often the right one."""
    n = i["classes"]
    logits, y = torch.arange(float(n)).expand(n, n), torch.arange(n)
    return {f"top{k}_error": 1 - top_k(logits, y, k).double().mean() for k in (1, 5)}


def updates(n: int, batch: int, drop_last: int = 0) -> int:
    """Batches until the stream reaches the second epoch."""
    stream, count = Shuffled({"x": torch.zeros(n, 1)}, batch, drop_last=drop_last), 0
    while stream.cursor.epoch == 0:
        next(stream)
        count += 1
    return count


def batches_per_epoch(i: Inputs) -> Inputs:
    """The last batch of an epoch reaches into the next one, unless B divides N; or the rest is dropped."""
    b = i["B"]
    return {"ceil": [updates(n, b) for n in i["N"]], "floor": [updates(n, b, drop_last=b) for n in i["N"]]}


def float16_range(i: Inputs) -> Inputs:
    half = torch.finfo(torch.float16)
    return {"min": half.smallest_normal, "max": half.max, "smallest_subnormal": smallest_subnormal()}


def underflow(i: Inputs) -> Inputs:
    g = real(i["g"])
    return {
        "float16_of_g": through_half(g),
        "scaled_then_unscaled": through_half(g, i["L_scale"]),
        "zero_below": lost_below(),
    }


def loss_scale(i: Inputs) -> Inputs:
    scale = 2 ** i["L_scale_exponent"]
    return {
        "L_scale_value": scale,
        "largest_loss_representable_after_scaling_in_fp16": largest_loss(scale),
        "float16_of_2.0_times_scale": through_half(real(2.0), scale),
    }


def frechet(i: Inputs) -> Inputs:
    x, y = real(i["real_features"]), real(i["generated_features"])
    (mu, c), (nu, e) = moments_of(x), moments_of(y)
    product = torch.linalg.eigvals(c @ e).real.clamp(min=0).sqrt().sum()  # tr (C E)^½, for any root
    one = real([[-1.0], [1.0]]) / 2**0.5  # variance 1
    return {
        "mu_r": mu,
        "mu_g": nu,
        "Sigma_r": c,
        "Sigma_g": e,
        "mean_term": (mu - nu).square().sum(),
        "fid": fid(x, y),
        "fid_via_eigenvalues_of_product": (mu - nu).square().sum() + (c + e).trace() - 2 * product,
        "fid_identical": round(fid(x, x), 12) + 0.0,
        "one_dim_check_mu_0_3_sd_1_2": round(frechet_distance(one, 2 * one + 3), 9),
    }


def heads_on_a_device(i: Inputs) -> Inputs:
    dealt = heads_of(0, i["gpus"], i["heads"])
    return {"heads_per_gpu": dealt.stop - dealt.start, "remainder": i["heads"] - dealt.stop * i["gpus"]}


def llama_mixture(i: Inputs) -> Inputs:
    percent = i["percent"]
    p = dict(zip(percent, check_shares(percent, list(percent)).tolist(), strict=True))
    tokens = {name: share * i["tokens"] for name, share in p.items()}
    return {
        "sum_percent": 100 * sum(p.values()),
        "total_tokens": sum(tokens.values()),
        "tokens_by_source": tokens,
    }


def count_references(i: Inputs) -> Inputs:
    """Numbers without a gap and without one twice."""
    return {"entries": len({r.number for r in references() if r.book == "DLN"} & set(range(1, i["entries"] + 1)))}


EXAMPLES: dict[str, Compute] = {
    "DLN-Bibliography-count": count_references,
    "MF-39.7-data-mix": llama_mixture,
    "DLN-MQA-tensor-parallel": heads_on_a_device,
    "MF-11.3.2-fp16-range": float16_range,
    "MF-11.3.2-underflow": underflow,
    "MF-11.3.1-loss-scale": loss_scale,
    "DLN-ILSVRC-random": random_guess,
    "DLD-1.8-batches-per-epoch": batches_per_epoch,
    "DLD-1.9-fid": frechet,
}

SET_ASIDE: dict[str, str] = {"MF-23.4.3-coco-stats": "needs COCO itself: the book counts its images and objects"}
