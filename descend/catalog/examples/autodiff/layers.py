"""Worked examples of the layers' backward rules and of attention's."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.func import jacrev
from torch.nn import functional as F

from descend.catalog.examples import Compute, Inputs, real
from descend.ops.attention.dot_product import attention, scores
from descend.ops.backward.attention import attention_backward
from descend.ops.backward.layers import (
    cross_entropy_backward,
    embedding_backward,
    layer_norm_backward,
    linear_backward,
    probability_adjoint,
    relu_backward,
    residual_backward,
    softmax_backward,
)


def slopes(f: Callable[..., Tensor], upstream: Tensor, *at: Tensor) -> tuple[Tensor, ...]:
    """Autograd's gradients of ⟨upstream, f⟩."""
    leaves = [x.clone().requires_grad_() for x in at]
    return torch.autograd.grad((f(*leaves) * upstream).sum(), leaves)


def agree(ours: tuple[Tensor, ...], theirs: tuple[Tensor, ...]) -> bool:
    return all(
        a.shape == b.shape and torch.allclose(a, b, rtol=0, atol=1e-10) for a, b in zip(ours, theirs, strict=True)
    )


def softmax_vjp(i: Inputs) -> Inputs:
    z, p_bar = real(i["z"]), real(i["pbar"])
    j = jacrev(lambda x: x.softmax(-1))(z)
    return {"zbar": softmax_backward(z.softmax(-1), p_bar), "J_T_pbar": j.T @ p_bar}


def ce_case(i: Inputs) -> Inputs:
    z, y = real(i["z"]), real(i["y"])
    p = z.softmax(-1)
    logit_adjoint = cross_entropy_backward(z[None], y.argmax()[None])[0]
    return {
        "zbar_from_p_minus_y": softmax_backward(p, logit_adjoint),
        "zbar_from_minus_y_over_p": softmax_backward(p, probability_adjoint(p, y)),
        "p_minus_y": logit_adjoint,
    }


def ce_grad(i: Inputs) -> Inputs:
    z, y = real(i["logits"]), torch.tensor(i["targets_0based"])
    found = cross_entropy_backward(z, y)
    theirs = slopes(lambda x: F.cross_entropy(x, y), real(1.0), z)
    return {"formula_equals_autograd": agree((found,), theirs), "loss": F.cross_entropy(z, y), "grad": found}


def ce_direction(i: Inputs) -> Inputs:
    z, y = real(i["logits"]), torch.tensor(i["targets_0based"])
    inner = (cross_entropy_backward(z, y) * (F.one_hot(y, z.shape[-1]) - z.softmax(-1))).sum(-1)
    return {"gradient_points_to_target": bool((inner > 0).all()), "inner_products": inner}


def linear(i: Inputs) -> Inputs:
    x, w, b, g = (real(i[name]) for name in ("X", "W", "b", "upstream"))
    found = linear_backward(x, w, g)
    theirs = slopes(lambda x, w, b: x @ w + b, g, x, w, b)
    return {"formula_equals_autograd": agree(found, theirs), **dict(zip(("dX", "dW", "db"), found, strict=True))}


def layer_norm(i: Inputs) -> Inputs:
    x, gamma, beta, g = (real(i[name]) for name in ("x", "gamma", "beta", "upstream"))
    found = layer_norm_backward(x, gamma, g, i["eps"])
    theirs = slopes(lambda x, a, b: F.layer_norm(x, x.shape[-1:], a, b, i["eps"]), g, x, gamma, beta)
    return {"formula_equals_autograd": agree(found, theirs), **dict(zip(("dx", "dgamma", "dbeta"), found, strict=True))}


def relu(i: Inputs) -> Inputs:
    x = real(i["x"])
    return {"dx": relu_backward(x, real(i["upstream"])), "dx_at_zero": relu_backward(real(0.0), real(1.0))}


def residual(i: Inputs) -> Inputs:
    g = real(i["upstream"])
    d_x, d_z = residual_backward(g)
    return {"both_equal_upstream": torch.equal(d_x, g) and torch.equal(d_z, g), "dX": d_x, "dZ": d_z}


def embedding(i: Inputs) -> Inputs:
    tokens, g = torch.tensor(i["t_0based_ids"]), real(i["upstream"])
    found = embedding_backward(tokens, g, i["vocab"])
    absent = [j for j in range(i["vocab"]) if j not in i["t_0based_ids"]]
    return {
        "repeated_token_row_is_sum": torch.equal(found[1], g[tokens == 1].sum(0)),
        "absent_rows_zero": not found[absent].any(),
        "dE": found,
    }


VOM_9_3 = {
    "X": [[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0]],
    "WQ": [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]],
    "WK": [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]],
    "WV": [[1.0, 1.0], [0.0, 0.0], [0.0, 1.0], [1.0, 0.0]],
    "upstream_dH": [[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]],
}


def head(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor) -> Tensor:
    return attention(x @ w_q, x @ w_k, x @ w_v)[0]


def attention_gradients(i: Inputs) -> Inputs:
    x, w_q, w_k, w_v, g = (real(i[name]) for name in VOM_9_3)
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    found = attention_backward(q, k, v, attention(q, k, v)[1], g)
    pairs = [linear_backward(x, w, d) for w, d in ((w_q, found.q), (w_k, found.k), (w_v, found.v))]
    d_x = pairs[0][0] + pairs[1][0] + pairs[2][0]
    ours = (d_x, *(pair[1] for pair in pairs))
    return {
        "formula_equals_autograd": agree(ours, slopes(head, g, x, w_q, w_k, w_v)),
        "dA": found.a,
        "dV": found.v,
        "dS": found.s,
        "dQ": found.q,
        "dK": found.k,
        "dWQ": pairs[0][1],
        "dX": d_x,
    }


def which_scores(_: Inputs) -> Inputs:
    x, w_q, w_k, w_v, g = (real(VOM_9_3[name]) for name in VOM_9_3)
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    found = attention_backward(q, k, v, attention(q, k, v)[1], g)
    right = slopes(lambda q: attention(q, k, v)[0], g, q)
    return {
        "step4_with_step2_gradient_is_right": agree((found.s @ k,), right),
        "step4_with_step3_gradient_is_right": agree((found.s / math.sqrt(q.shape[-1]) @ k,), right),
    }


def score_shape(i: Inputs) -> Inputs:
    """Features x tokens: `scores` of Q and K themselves is the printed Q Kᵀ, of Qᵀ and Kᵀ the needed one."""
    found: Inputs = {}
    for t in i["T"]:
        q = k = torch.ones(i["d_k"], t, dtype=torch.float64)
        found |= {f"printed_shape_T{t}": scores(q, k).shape, f"needed_shape_T{t}": scores(q.T, k.T).shape}
    return found


def printed_set(i: Inputs) -> Inputs:
    """(21.19)-(21.22) in four layouts, each made of tokens x features by transposing what it transposes."""
    random = torch.Generator().manual_seed(i["torch_seed"])
    q, k, v, g = (torch.randn(i["T"], i["d_k"], generator=random, dtype=torch.float64) for _ in range(4))
    a, root = attention(q, k, v)[1], math.sqrt(i["d_k"])
    right = attention_backward(q, k, v, a, g)

    def judge(G: Tensor, A: Tensor, V: Tensor, K: Tensor, d_v: Tensor, d_a: Tensor, d_e: Tensor, d_q: Tensor) -> Inputs:
        """Whether each printed equation gives the gradients of this layout, where its shapes fit at all."""

        def holds(formula: Callable[[], Tensor], truth: Tensor) -> bool:
            try:
                return agree((formula(),), (truth,))
            except RuntimeError:  # the shapes do not fit
                return False

        return {
            "eq_21.19_dV=G A": holds(lambda: G @ A, d_v),
            "eq_21.20_dA=G^T V": holds(lambda: G.T @ V, d_a),
            "eq_21.21_column_softmax": holds(lambda: softmax_backward(A.T, d_a.T).T, d_e),
            "eq_21.22_dQ=dE K/sqrt(dk)": holds(lambda: d_e @ K / root, d_q),
        }

    e, dq, dv, da = right.s, right.q, right.v, right.a
    # The last layout, head = A Vᵀ, makes a head of tokens x features from features x tokens: G is not transposed.
    return {
        "tokens x features, row softmax, head = A V": judge(g, a, v, k, dv, da, e, dq),
        "features x tokens, rows are queries, head = V A^T": judge(g.T, a, v.T, k.T, dv.T, da, e, dq.T),
        "features x tokens, columns are queries, column softmax, head = V A": judge(
            g.T, a.T, v.T, k.T, dv.T, da.T, e.T, dq.T
        ),
        "features x tokens, rows are queries, head = A V^T (as printed)": judge(g, a, v.T, k.T, dv.T, da, e, dq.T),
    }


EXAMPLES: dict[str, Compute] = {
    "MF-10.4.2-softmax-vjp": softmax_vjp,
    "MF-10.4.2-ce-case": ce_case,
    "VOM-12.4.2-ce-grad": ce_grad,
    "VOM-12.4.2-direction": ce_direction,
    "VOM-12.4.3-linear-grad": linear,
    "VOM-12.4.4-ln-grad": layer_norm,
    "VOM-12.4.5-relu-grad": relu,
    "VOM-12.4.7-residual-grad": residual,
    "VOM-12.4.8-embedding-grad": embedding,
    "MF-21.3.3-attention-gradients": printed_set,
    "MF-21.3.2-score-shape": score_shape,
    "VOM-12.4.6-attention-grad": attention_gradients,
    "VOM-12.4.6-scaling-notation": which_scores,
}

SET_ASIDE: dict[str, str] = {}
