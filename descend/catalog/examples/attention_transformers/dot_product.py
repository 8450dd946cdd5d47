"""Worked examples of scaled-dot-product-attention and unscaled-self-attention."""

from __future__ import annotations

import torch
from torch import Tensor

from descend.catalog.examples import Compute, Inputs, real
from descend.catalog.examples.attention_transformers.scaling import sign_scores
from descend.ops.attention.dot_product import attention, scores, unscaled_attention, weigh
from descend.theory.attention import score_std


def qkv(i: Inputs) -> tuple[Tensor, Tensor, Tensor]:
    """Q = X W^Q, K = X W^K, V = X W^V."""
    x = real(i["X"])
    return x @ real(i["WQ"]), x @ real(i["WK"]), x @ real(i["WV"])


def unscaled_scores(q: Tensor, k: Tensor) -> Tensor:
    """Q Kᵀ: the scores before the division by √d_k."""
    return scores(q, k) * score_std(q.shape[-1])


def variance_by_enumeration(i: Inputs) -> Inputs:
    s = sign_scores(i["D_K"])
    dots = s * score_std(i["D_K"])
    variance = dots.var(correction=0)
    return {
        "mean": dots.mean(),
        "variance": variance,
        "std": variance.sqrt(),
        "variance_after_scaling": s.var(correction=0),
    }


def s940_attention(i: Inputs) -> Inputs:
    q, k, v = real(i["Q"]), real(i["K"]), real(i["V"])
    output, weights = attention(q, k, v)
    return {"scores": scores(q, k), "weights": weights, "output": output, "row_sums": weights.sum(-1)}


def dld_attention(i: Inputs) -> Inputs:
    t = real(i["T"])
    q, k, v = (t @ real(i[w]).T for w in ("W_q", "W_k", "W_v"))
    output, weights = attention(q, k, v)
    return {"Q": q, "K": k, "V": v, "A": weights, "T_out": output}


def one_query(i: Inputs) -> tuple[Tensor, Tensor, Tensor]:
    return real([i["q"]]), real(i["K"]), real(i["V"])


def vom_scores(i: Inputs) -> Inputs:
    q, k, _ = one_query(i)
    return {"raw": unscaled_scores(q, k)[0], "scores": scores(q, k)[0]}


def vom_weights(i: Inputs) -> Inputs:
    q, k, v = one_query(i)
    e = scores(q, k)[0].exp()
    return {"exp": e, "sum": e.sum(), "weights": attention(q, k, v)[1][0]}


def vom_output(i: Inputs) -> Inputs:
    q, k, v = one_query(i)
    output, weights = attention(q, k, v)
    return {"terms_1": weights[0] * v[:, 0], "terms_2": weights[0] * v[:, 1], "output": output[0]}


def vom_distances(i: Inputs) -> Inputs:
    q, k, v = one_query(i)
    distances = (attention(q, k, v)[0] - v).norm(dim=-1)
    return {"nearer_v3_than_v1": bool(distances[2] < distances[0]), "distances": distances}


def vom_matrix(i: Inputs) -> Inputs:
    q, k, v = real(i["Q"]), real(i["K"]), real(i["V"])
    output, weights = attention(q, k, v)
    return {"QKT": unscaled_scores(q, k), "scaled": scores(q, k), "softmax": weights, "output": output}


def vom_qkv(i: Inputs) -> Inputs:
    return dict(zip("QKV", qkv(i), strict=True))


def vom_qkt(i: Inputs) -> Inputs:
    return {"QKt": unscaled_scores(real(i["Q"]), real(i["K"]))}


def vom_scaled(i: Inputs) -> Inputs:
    std = score_std(i["d_k"])
    return {"sqrt_dk": std, "S": real(i["QKt"]) / std}


def vom_softmax_terms(i: Inputs) -> Inputs:
    rounded = real(i["s"]).exp()
    q, k = real([[2.0, 0.0]]), real([[0.0, 2.0], [2.0, 0.0], [1.0, 1.0]])  # row 1 of the section's Q, and its K
    exact = scores(q, k)[0].exp()
    return {
        "exp_2.83": rounded[1],
        "exp_1.41": rounded[2],
        "sum": rounded.sum(),
        "exact_exp_2sqrt2": exact[1],
        "exact_exp_sqrt2": exact[2],
        "exact_sum": exact.sum(),
    }


def vom_attention(i: Inputs) -> Inputs:
    s = real(i["S"])
    return {"A": weigh(s, s)[1]}


def vom_mix(i: Inputs) -> Inputs:
    return {"O": weigh(real(i["A"]).log(), real(i["V"]))[0]}  # softmax(log A) = A


def vom_doubling(i: Inputs) -> Inputs:
    q, k, v = qkv(i)
    once, weights = attention(q, k, v)
    twice, _ = attention(*qkv(i | {"X": (2 * real(i["X"])).tolist()}))
    return {
        "doubling_claim_holds": torch.allclose(twice, 2 * once),
        "SA_2X": twice,
        "two_SA_X": 2 * once,
        "holds_with_A_held_fixed": torch.allclose(weights @ (2 * v), 2 * once),
    }


def self_attention_constraints(i: Inputs) -> Inputs:
    x = real(i["X"])
    z, a = unscaled_attention(x, x, x)
    return {"A": a, "row_sums": a.sum(-1), "min_weight": a.min(), "Z": z, "Z_shape": z.shape}


EXAMPLES: dict[str, Compute] = {
    "DLN-ScaledAttention-variance": variance_by_enumeration,
    "S940-5.1-attention": s940_attention,
    "DLD-5.6-self-attention": dld_attention,
    "VOM-8.4.1-scores": vom_scores,
    "VOM-8.4.1-weights": vom_weights,
    "VOM-8.4.1-output": vom_output,
    "VOM-8.4.1-distances": vom_distances,
    "VOM-8.5.1-matrix": vom_matrix,
    "VOM-9.3-qkv": vom_qkv,
    "VOM-9.3-qkt": vom_qkt,
    "VOM-9.3-scores": vom_scaled,
    "VOM-9.3-softmax-row1-terms": vom_softmax_terms,
    "VOM-9.3-attention": vom_attention,
    "VOM-9.3-output": vom_mix,
    "VOM-9.8-doubling": vom_doubling,
    "DLN-SelfAttention-constraints": self_attention_constraints,
}

SET_ASIDE: dict[str, str] = {}
