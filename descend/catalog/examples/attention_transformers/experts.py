"""Worked examples of mixture-of-experts and load-balancing-loss."""

from __future__ import annotations

import torch

from descend.catalog.examples import Compute, Inputs, real
from descend.losses.balance import balance_value, shares
from descend.models.mixtral import Mixtral, MixtralConfig
from descend.nn.experts import total_and_active
from descend.ops.routing import gates, top_k, top_k_renormalised
from descend.theory.experts import active_fraction, expert_fraction


def mf_fraction(i: Inputs) -> Inputs:
    return {
        "fraction": expert_fraction(i["k"], i["N"]),
        "active_over_total_params_printed": active_fraction(13, 47),  # in billions, as MF prints them
    }


def renormalized_gate(i: Inputs) -> Inputs:
    z = real(i["gate_logits"])
    p = gates(z)
    weight, chosen = top_k_renormalised(p, 2)
    return {
        "experts_1based": chosen + 1,
        "full_softmax": p,
        "renormalised": weight,
        "softmax_of_top_logits": gates(z[chosen]),
    }


def s940_gate(i: Inputs) -> Inputs:
    p = gates(real(i["logits"]))
    kept, _ = top_k(p, i["k"])
    return {
        "G": p,
        "kept": kept,
        "sum_kept": kept.sum(),
        "renormalised_alternative": top_k_renormalised(p, i["k"])[0],
    }


def s940_fraction(i: Inputs) -> Inputs:
    heads = i["d_model"] // i["head_dim"]
    with torch.device("meta"):
        model = Mixtral(
            MixtralConfig(
                vocab=i["vocab"], width=i["d_model"], depth=i["layers"], heads=heads, kv_heads=i["kv_heads"],
                hidden=i["ffn"], experts=i["E"], active=i["k"],
            )
        )  # fmt: skip
    total, active = total_and_active(model, i["k"])
    experts = [total_and_active(block.mlp.experts, i["k"]) for block in model.blocks]  # type: ignore[union-attr, arg-type]
    return {
        "two_over_E": expert_fraction(i["k"], i["E"]),
        "total_parameters": total,
        "active_parameters": active,
        "active_fraction": active_fraction(active, total),
        "active_fraction_of_expert_parameters": active_fraction(sum(a for _, a in experts), sum(t for t, _ in experts)),
    }


def balance(i: Inputs) -> Inputs:
    n, k = i["N"], i["k"]
    in_turn = torch.stack([(torch.arange(n) + j) % n for j in range(k)], 1)  # every expert k times
    even = shares(in_turn, n).double()
    return {
        "uniform": i["alpha"] * balance_value(torch.full((n,), 1 / n, dtype=torch.float64), even),
        "sum_P": even.sum(),
        "collapsed_on_two_experts": i["alpha"] * balance_value(real(i["collapsed_f"]), real(i["collapsed_P"])),
    }


EXAMPLES: dict[str, Compute] = {
    "MF-40.1.1-active-fraction": mf_fraction,
    "MF-40.4-renormalised-gate": renormalized_gate,
    "S940-12.4-moe-gate": s940_gate,
    "S940-12.4-moe-active-fraction": s940_fraction,
    "MF-40.5-balance-value": balance,
}

SET_ASIDE: dict[str, str] = {}
