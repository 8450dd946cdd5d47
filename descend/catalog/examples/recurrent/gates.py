"""Worked examples of the family recurrent: gated cells, the gradient along the cell state, attention weights."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from descend.catalog.examples import Compute, Inputs, real
from descend.ops.attention.dot_product import weigh
from descend.ops.backward.recurrent import lstm_backward, lstm_states
from descend.ops.recurrent import (
    After,
    Gates,
    Memory,
    Opened,
    cell_state,
    gated_memory,
    gru,
    gru_after,
    gru_from_torch,
    gru_of_new,
    gru_opened,
    lstm,
    lstm_opened,
    mix,
)
from descend.theory.recurrent import gru_parameters, highway, lstm_parameters


def kept_value(i: Inputs) -> Inputs:
    write, keep, read = (real(i[name]) for name in ("write", "keep", "read"))
    x = torch.where(torch.arange(len(write)) == 0, real(i["x_first"]), real(i["x_other"]))
    kept = gated_memory(x, write, keep, read)
    like_an_lstm = read * cell_state(torch.zeros((), dtype=torch.float64), keep, write, x)
    return {
        "content": kept.content,
        "outputs": kept.y,
        "carried_after_last_step": kept.carried[-1],
        "outputs_with_LSTM_timing": like_an_lstm,
    }


def frozen_state(i: Inputs) -> Inputs:
    c, steps = real(i["c0"]), i["steps"]
    f, shut = (torch.full((steps, 1), float(i[name]), dtype=torch.float64) for name in ("f", "i"))
    found = cell_state(c, f, shut, torch.ones(steps, 1, dtype=torch.float64))[-1]
    return {"c_100": found, "unchanged": bool(torch.equal(found, c))}


def four_gates(i: Inputs) -> Inputs:
    """What a step opens: three values between 0 and 1, and one candidate that is below 0 at times."""
    random = torch.Generator().manual_seed(0)
    w = Gates(torch.randn(4 * 50, 50, generator=random), torch.zeros(200))
    x, zero = torch.randn(50, 0), torch.zeros(50, 50)
    opened = lstm_opened(x, Memory(torch.randn(50, 50, generator=random), zero), w)
    maps = [opened.f, opened.i, opened.o, opened.candidate]
    gates = sum(bool((m > 0).all()) for m in maps)
    return {"sigmoid_gates": gates, "tanh_candidate": len(maps) - gates, "affine_maps": len(w.b) // 50}


def jacobians(w: Gates, x: Tensor, c: Tensor, h_of: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """f, ∂c_t/∂c_{t-1} with h_{t-1} held fixed, and with h_{t-1} = h_of(c_{t-1}) followed too."""

    def direct(c: Tensor) -> Tensor:
        return lstm(x, Memory(h_of(start), c), w).c

    start = c.clone()
    f = lstm_opened(x, Memory(h_of(c), c), w).f
    fixed = torch.autograd.functional.jacobian(direct, c)
    total = torch.autograd.functional.jacobian(lambda c: lstm(x, Memory(h_of(c), c), w).c, c)
    return f, fixed, total


def draw_cell(seed: int, inputs: int, hidden: int) -> tuple[Gates, Tensor, Tensor, Tensor]:
    """Weights and an input N(0, 1), a cell state, and an output gate."""
    random = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    return (
        Gates(draw(4 * hidden, hidden + inputs), draw(4 * hidden)),
        draw(inputs),
        draw(hidden),
        draw(hidden).sigmoid(),
    )


def direct_path(i: Inputs) -> Inputs:
    w, x, c, o = draw_cell(i["seed"], i["input_dim"], i["hidden_dim"])
    f, fixed, _ = jacobians(w, x, c, lambda c: o * c.tanh())
    return {"direct_jacobian_equals_diag_f": bool((fixed - f.diag()).abs().max() < 1e-12)}


def direct_difference(i: Inputs) -> Inputs:
    w, x, c, o = draw_cell(0, i["n"], i["d"])
    f, fixed, _ = jacobians(w, x, c, lambda c: o * c.tanh())
    return {"direct_path_difference": (fixed - f.diag()).abs().max()}


def products_of_gates(i: Inputs) -> Inputs:
    f = torch.full((i["steps"],), i["f"], dtype=torch.float64)
    return {
        "product": highway(f),
        "sum": f.sum(),
        "product_if_f_0.9": highway(torch.full_like(f, 0.9)),
        "product_if_f_0.5": highway(torch.full_like(f, 0.5)),
    }


def two_steps(i: Inputs) -> Inputs:
    zero = torch.zeros(2, dtype=torch.float64)
    w = Gates(
        torch.cat([real(i[name]) for name in ("Wf", "Wi", "Wo", "Wc")]), torch.cat([real(i["bf"]), zero, zero, zero])
    )
    first = lstm_opened(real(i["x1"]), Memory(real(i["h0"]), real(i["c0"])), w)
    f, fixed, total = jacobians(w, real(i["x2"]), first.c, lambda c: first.o * c.tanh())
    return {"h1": first.h, "c1": first.c, "f2": f, "jacobian_h_fixed": fixed, "jacobian_total_through_h": total}


def cell_gradient(i: Inputs) -> Inputs:
    """All eight matrices are 0.1 I, so each gate reads 0.1 (h + x)."""
    x, zero = real(i["x"]), torch.zeros(2, dtype=torch.float64)
    tenth = 0.1 * torch.eye(2, dtype=torch.float64)
    w = Gates(torch.cat([torch.cat([tenth, tenth], dim=1)] * 4), torch.zeros(8, dtype=torch.float64))
    steps: list[Opened] = lstm_states(x, Memory(zero, zero), w)
    back = lstm_backward(x, Memory(zero, zero), steps, w, torch.ones(2, 2, dtype=torch.float64))

    def loss_from(c_1: Tensor) -> Tensor:
        h_1 = steps[0].o * c_1.tanh()
        return h_1.sum() + lstm(x[1], Memory(h_1, c_1), w).h.sum()

    automatic = torch.autograd.functional.jacobian(loss_from, steps[0].c)
    return {
        "c1": steps[0].c,
        "h1": steps[0].h,
        "c2": steps[1].c,
        "h2": steps[1].h,
        "dh1_total": back.h[0],
        "dc2": back.c[1],
        "dc1_autograd": automatic,
        "dc1_formula": back.c[0],
    }


def update_gate(i: Inputs) -> Inputs:
    return {"h": mix(real(i["z"]), real(i["h_prev"]), real(i["h_candidate"]))}


def beside_torch(i: Inputs) -> Inputs:
    torch.manual_seed(i["seed"])
    cell = nn.GRUCell(i["input_dim"], i["hidden_dim"]).double()
    x, h = torch.randn(1, i["input_dim"]).double(), torch.randn(1, i["hidden_dim"]).double()
    weights = cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh
    differs = (gru(x, h, gru_from_torch(*weights)) - cell(x, h)).abs().max()
    assert differs > 1e-6, "the two forms agree, which they must not"
    return {"library_formula_equals_torch": bool((gru_after(x, h, After(*weights)) - cell(x, h)).abs().max() < 1e-12)}


def sizes(i: Inputs) -> Inputs:
    d, h = i["input"], i["hidden"]
    lstm_count, bare, one = lstm_parameters(d, h), gru_parameters(d, h, 0), gru_parameters(d, h, 1)
    return {
        "lstm": lstm_count,
        "gru_no_bias": bare,
        "gru_with_one_bias": one,
        "ratio_no_bias": bare / lstm_count,
        "ratio_weights_only": one / lstm_count,
    }


def conventions(i: Inputs) -> Inputs:
    """torch keeps by z, so the weights of z change sign; and it resets after the matrix."""
    x, h, size = real(i["x"]), real(i["h"]), 2
    w = Gates(torch.cat([real(i[name]) for name in ("Wr", "Wz", "Wh")]), torch.zeros(6, dtype=torch.float64))
    opened = gru_opened(x, h, w)
    flipped = torch.cat([w.w[:size], -w.w[size : 2 * size], w.w[2 * size :]])
    theirs = After(flipped[:, size:], flipped[:, :size], w.b, w.b)
    return {
        "z": opened.z,
        "r": opened.r,
        "htilde": opened.candidate,
        "h": gru_of_new(x, h, w),
        "torch_GRUCell_with_matched_weights": gru_after(x, h, theirs),
    }


def alignment(i: Inputs) -> Inputs:
    """Weights of the first row as the softmax of their logarithms; the sum of the rest is what is left."""
    words = real([i["Le"].get(word, 0.0) for word in ("The", "cat", "sat")])
    _, a = weigh(words.log()[None], torch.eye(3, dtype=torch.float64))
    return {
        "sum_Le": a.sum(),
        "left_for_sat_when_Le": a[0, 2],
        "left_for_The_and_sat_when_chat": 1 - sum(i["chat"].values()),
    }


EXAMPLES: dict[str, Compute] = {
    "DLN-GatedMemory-1.7": kept_value,
    "DLN-LSTM-frozen-state": frozen_state,
    "S940-4.3-four-gates": four_gates,
    "DLN-LSTM-gradient-path": direct_path,
    "MF-16.1.2-forget-product": products_of_gates,
    "S940-4.3-lstm-cell-gradient": two_steps,
    "VOM-6.5.1-cell-jacobian": direct_difference,
    "MF-21.2.3-lstm-cell-gradient": cell_gradient,
    "DLN-GRU-gate-limits": update_gate,
    "DLN-GRU-vs-library": beside_torch,
    "S940-4.3-lstm-gru-parameters": sizes,
    "S940-4.4-gru-convention": conventions,
    "MF-17.3.2-weights": alignment,
}

SET_ASIDE: dict[str, str] = {
    "MF-21.2.1-lstm-setup": "the book gives no inputs, biases, states, targets or results to compute with",
    "DLN-LSTM-gradient-path:forget_gate": "drawn by another random generator; only the claim is comparable",
    "DLN-LSTM-gradient-path:full_jacobian_minus_direct_max": "drawn by another random generator; a test bounds ours",
    "VOM-6.5.1-cell-jacobian:total_derivative_max_deviation": "drawn by another random generator; a test bounds ours",
    "DLN-GRU-vs-library:max_difference_text_vs_torch": "drawn by another random generator; a test bounds ours",
}
