"""Worked examples of LoRA: counts, the first step, and the merged matrix with and without its scale."""

from __future__ import annotations

import torch
from torch import nn

from descend.catalog.examples import Compute, Inputs, real
from descend.nn.adapters.lora import LowRankUpdate
from descend.ops.low_rank import numeric_rank
from descend.theory.adapters import lora_parameters, lora_reduction, lora_share


def counts(i: Inputs) -> Inputs:
    d, k, r = i["d"], i["k"], i["r"]
    with torch.device("meta"):
        update = LowRankUpdate(k, d, r, 1.0)
    found = {"full": nn.Linear(k, d, bias=False, device="meta").weight.numel(), "A": update.a.numel()}
    return {**found, "B": update.b.numel(), "lora": lora_parameters([(d, k)], r)}


def reduction(i: Inputs) -> Inputs:
    return {"factor": lora_reduction(i["d"], i["k"], i["r"])}


def pairs(i: Inputs) -> Inputs:
    count = i["layers"] * i["matrices"]
    return {"pairs": count, "trainable_params_r16_d4096": lora_parameters([(4096, 4096)] * count, 16)}


def share(i: Inputs) -> Inputs:
    d, r = i["d"], i["r"]
    square, up, down = (d, d), (4 * d, d), (d, 4 * d)
    found = {
        "q_and_v_percent": 100 * lora_share(d, r, [square] * 2),
        "four_attention_percent": 100 * lora_share(d, r, [square] * 4),
        "all_six_percent": 100 * lora_share(d, r, [*[square] * 4, up, down]),
    }
    return {"within_0.1_to_1_percent": all(0.1 <= percent <= 1 for percent in found.values()), **found}


def layer(i: Inputs, alpha: float) -> tuple[nn.Linear, LowRankUpdate, torch.Tensor]:
    """A frozen matrix (d, k), its update and an input."""
    torch.manual_seed(i["seed"])
    frozen = nn.Linear(i["k"], i["d"], bias=False).double().requires_grad_(False)
    return frozen, LowRankUpdate(i["k"], i["d"], i["r"], alpha / i["r"]).double(), torch.randn(1, i["k"]).double()


def merge(i: Inputs) -> Inputs:
    frozen, update, x = layer(i, i["alpha"])
    nn.init.normal_(update.b)
    h = update.add(frozen, (x,), frozen(x))
    by = lambda w: torch.allclose(x @ w.T, h)
    return {
        "merge_W_plus_BA_is_equivalent": by(frozen.weight + update.b @ update.a),
        "merge_with_alpha_over_r_is_equivalent": by(update.merge(frozen.weight)),
        "rank_of_BA": numeric_rank(update.b @ update.a),
    }


def init(i: Inputs) -> Inputs:
    frozen, update, x = layer(i, i["r"])
    h = update.add(frozen, (x,), frozen(x))
    (h * real(i["upstream"])).sum().backward()
    grads = [p.grad for p in (update.a, update.b)]
    return {
        "starts_at_pretrained": torch.equal(h, frozen(x)),
        "grad_A_is_zero": not bool(grads[0].any()) if grads[0] is not None else True,
        "grad_B_is_zero": not bool(grads[1].any()) if grads[1] is not None else True,
    }


EXAMPLES: dict[str, Compute] = {
    "VOM-13.6.5.1-lora-counts": counts,
    "VOM-13.6.5.1-lora-reduction": reduction,
    "VOM-13.6.5.1-lora-pairs": pairs,
    "VOM-13.6.5.1-lora-share": share,
    "VOM-13.6.5.1-lora-merge": merge,
    "VOM-13.6.5.1-lora-init": init,
}

SET_ASIDE: dict[str, str] = {}
