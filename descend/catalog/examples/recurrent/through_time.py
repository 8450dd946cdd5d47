"""Worked examples of the family recurrent: the vanilla network forward, and backpropagation through time."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from descend.catalog.examples import Compute, Inputs, real
from descend.losses.classification import binary_cross_entropy, cross_entropy
from descend.ops.backward.recurrent import (
    Passed,
    output_backward,
    product,
    rnn_backward,
    states,
    step_jacobians,
    tanh_slope,
)
from descend.ops.recurrent import RNN, preactivation, readout, rnn, rnn_from_torch, unroll
from descend.optim.rules import SGD
from descend.theory.recurrent import state_megabytes

# MF 21.1: the inputs are printed once; its later steps start from them too.
W_HH = [[0.1, 0.2, 0.3], [0.4, 0.1, 0.2], [0.2, 0.3, 0.1]]
W_XH = [[0.5, 0.6], [0.3, 0.4], [0.2, 0.1]]
W_HY, B_H, B_Y = [[0.7, 0.5, 0.3]], [0.1, 0.0, 0.1], [0.05]
X = [[0.5, 0.2], [0.3, 0.4], [0.2, 0.5]]


def walk() -> tuple[RNN, Tensor, Tensor, Tensor]:
    """The weights of MF 21.1, its inputs, the states, and ŷ at every step."""
    w, x = RNN(real(W_HH), real(W_XH), real(B_H)), real(X)
    h = states(x, torch.zeros(3, dtype=torch.float64), w)
    return w, x, h, readout(h, real(W_HY), real(B_Y)).sigmoid()[:, 0]


def walk_back() -> tuple[Passed, Tensor, tuple[Tensor, Tensor, Tensor]]:
    """The whole backward pass of MF 21.1, whose loss is at the last step only; y = 1."""
    w, x, h, y_hat = walk()
    delta_y = torch.zeros(3, 1, dtype=torch.float64)
    delta_y[2] = y_hat[2] - 1
    out = output_backward(h, real(W_HY), delta_y)
    return rnn_backward(x, torch.zeros(3, dtype=torch.float64), h, w, out[0]), delta_y, out


def cell_code(i: Inputs) -> Inputs:
    """DLN's W_hy (hidden, output) multiplies from the left."""

    def try_outputs(outputs: int) -> tuple[str, list[int]]:
        w_hy = torch.randn(i["hidden_dim"], outputs)
        try:
            return "ok", list(readout(torch.randn(i["hidden_dim"]), w_hy, torch.zeros(i["hidden_dim"]))[:, None].shape)
        except RuntimeError as error:
            return type(error).__name__, []

    h, (wrong, _), (same, shape) = torch.randn(i["hidden_dim"]), try_outputs(i["output_dim"]), try_outputs(4)
    right = readout(h, torch.randn(i["hidden_dim"], i["output_dim"]).T, torch.zeros(i["output_dim"]))
    return {
        "status_hidden4_output2": wrong,
        "y_shape_with_transpose": list(right[:, None].shape),
        "status_hidden4_output4": same,
        "y_shape_hidden4_output4": shape,
    }


def trace(i: Inputs) -> tuple[RNN, Tensor, Tensor]:
    """VOM 6.3: weights, inputs (t, 1) and states with h_0 in front."""
    w, x, h_0 = RNN(real(i["W_h"]), real(i["W_x"]), real(i["b"])), real(i["x"])[:, None], real(i["h0"])
    return w, x, torch.cat([h_0[None], states(x, h_0, w)])


def trace_step(step: int) -> Compute:
    def compute(i: Inputs) -> Inputs:
        w, x, h = trace(i)
        before = h[step - 1]
        found: Inputs = {"z": preactivation(x[step - 1], before, w), f"h{step}": rnn(x[step - 1], before, w)}
        return found if step == 1 else {"terms": w.w_hh * before, **found}

    return compute


def gradient_sum(i: Inputs) -> Inputs:
    """Shared weights and T copies of them; and the row formula beside torch's RNN."""
    random = torch.Generator().manual_seed(i["seed"])
    d, size, out, t = i["input_dim"], i["hidden_dim"], i["output_dim"], i["T"]

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    w, w_hy, x = RNN(draw(size, size), draw(size, d), draw(size)), draw(out, size), draw(t, d)
    y = torch.randint(out, (t,), generator=random)
    zero = torch.zeros(size, dtype=torch.float64)

    def loss(step: Callable[[int, Tensor, Tensor], Tensor]) -> Tensor:
        times = iter(range(t))
        h = torch.stack(unroll(lambda x_t, h: step(next(times), x_t, h), x, zero))
        return cross_entropy(readout(h, w_hy, torch.zeros(out, dtype=torch.float64)), y).sum()

    shared = w.w_hh.clone().requires_grad_()
    loss(lambda _, x_t, h: rnn(x_t, h, w._replace(w_hh=shared))).backward()
    copies = [w.w_hh.clone().requires_grad_() for _ in range(t)]
    loss(lambda n, x_t, h: rnn(x_t, h, w._replace(w_hh=copies[n]))).backward()
    layer = nn.RNN(d, size, batch_first=True).double()
    theirs = rnn_from_torch(*layer.parameters())
    summed = torch.stack([c.grad for c in copies if c.grad is not None]).sum(0)
    assert shared.grad is not None
    return {
        "equal_within_1e-12": bool((shared.grad - summed).abs().max() < 1e-12),
        "row_formula_equals_library_rnn_within_1e-12": bool(
            (states(x, zero, theirs) - layer(x[None])[0][0]).abs().max() < 1e-12
        ),
    }


def all_steps(i: Inputs) -> Inputs:
    """MF (15.11)-(15.22), a loss at every step."""
    w, x, h_0 = RNN(real(i["W_hh"]), real(i["W_xh"]), real(i["b_h"])), real(i["x"]), real(i["h0"])
    w_hy, b_y, y = real(i["W_hy"]), real([i["b_y"]]), real([float(i["y"])] * 3)
    leaves = [p.requires_grad_() for p in (*w, w_hy, b_y)]
    h = states(x, h_0, w)
    z = readout(h, w_hy, b_y)[:, 0]
    loss = binary_cross_entropy(z, y).sum()
    automatic = torch.autograd.grad(loss, leaves)
    with torch.no_grad():
        delta_y = (z.sigmoid() - y)[:, None]
        upstream, dw_hy, db_y = output_backward(h, w_hy, delta_y)
        back = rnn_backward(x, h_0, h, w, upstream)
        mine = (back.w_hh, back.w_xh, back.b_h, dw_hy, db_y)
    return {
        "L_total": loss.detach(),
        "delta_h": back.delta_h,
        "delta_y": delta_y[:, 0],
        "dW_hh": back.w_hh,
        "dW_xh": back.w_xh,
        "dW_hy": dw_hy,
        "db_h": back.b_h,
        "db_y": db_y[0],
        "max_abs_difference_to_autograd": all(
            bool((a - b).abs().max() < 1e-14) for a, b in zip(mine, automatic, strict=True)
        ),
    }


def forward_step(t: int) -> Compute:
    def compute(i: Inputs) -> Inputs:
        w, x, h, y_hat = walk()
        w_hy, b_y = real(W_HY), real(B_Y)
        before = torch.zeros_like(h[0]) if t == 1 else h[t - 2]
        found = {"z": preactivation(x[t - 1], before, w), "h": h[t - 1], "y_hat": y_hat[t - 1]}
        if t == 1:
            printed_logit = real(0.5358)
            return {
                **found,
                "logit": readout(h[0], w_hy, b_y)[0],
                "logit_from_printed_h": readout(real([0.44, 0.226, 0.216]), w_hy, b_y)[0],
                "y_hat_from_printed_logit": printed_logit.sigmoid(),
            }
        printed_z = {2: [0.645, 0.452, 0.357], 3: [0.812, 0.641, 0.485]}[t]
        printed_h = {2: [0.567, 0.422, 0.343], 3: [0.675, 0.568, 0.449]}[t]
        return {
            **found,
            f"z_from_printed_h{t - 1}": preactivation(x[t - 1], real(i[f"printed_h{t - 1}"]), w),
            f"h_from_printed_z{t}": real(printed_z).tanh(),
            f"y_hat_from_printed_h{t}": readout(real(printed_h), w_hy, b_y).sigmoid()[0],
        }

    return compute


def loss_at_the_end(i: Inputs) -> Inputs:
    y, printed = real(float(i["y"])), real(i["y_hat_printed"])
    y_hat = walk()[3][2]
    return {
        "L": binary_cross_entropy(y_hat.logit(), y),
        "L_from_printed_y_hat": binary_cross_entropy(printed.logit(), y),
    }


def output_delta(i: Inputs) -> Inputs:
    _, delta_y, _ = walk_back()
    return {"delta_y": delta_y[2, 0], "from_printed": i["y_hat_printed"] - i["y"]}


def one_step_back(h: Tensor, w_hh: Tensor, arriving: Tensor) -> Passed:
    """The delta of one step whose own loss is 0: only W_hhᵀ δ arrives, or W_hyᵀ δ_y given as it is."""
    w = RNN(w_hh, torch.zeros(3, 1, dtype=torch.float64), torch.zeros(3, dtype=torch.float64))
    return rnn_backward(torch.zeros(1, 1, dtype=torch.float64), torch.zeros_like(h), h[None], w, arriving[None])


def hidden_delta_3(i: Inputs) -> Inputs:
    back, _, _ = walk_back()
    h, printed_h = walk()[2], real(i["printed_h3"])
    upstream, _, _ = output_backward(printed_h[None], real(W_HY), real([[i["printed_delta_y"]]]))
    printed = one_step_back(printed_h, real(W_HH), upstream[0])
    return {
        "upstream": back.upstream[2],
        "slope": tanh_slope(h[2]),
        "delta_h": back.delta_h[2],
        "upstream_from_printed": printed.upstream[0],
        "slope_from_printed": tanh_slope(printed_h),
        "delta_h_from_printed": printed.delta_h[0],
    }


def hidden_delta_2(i: Inputs) -> Inputs:
    back, _, _ = walk_back()
    h, printed_h = walk()[2], real(i["printed_h2"])
    printed = one_step_back(printed_h, real(W_HH), real(i["printed_delta_h3"]) @ real(W_HH))
    return {
        "upstream": back.upstream[1],
        "slope": tanh_slope(h[1]),
        "delta_h": back.delta_h[1],
        "upstream_from_printed": printed.upstream[0],
        "slope_from_printed": tanh_slope(printed_h),
        "delta_h_from_printed": printed.delta_h[0],
    }


def hidden_delta_1(i: Inputs) -> Inputs:
    printed = one_step_back(real(i["printed_h1"]), real(W_HH), real(i["printed_delta_h2"]) @ real(W_HH))
    return {"delta_h": walk_back()[0].delta_h[0], "delta_h_from_printed": printed.delta_h[0]}


def summed_gradient(i: Inputs) -> Inputs:
    back, _, (_, dw_hy, db_y) = walk_back()
    deltas = torch.stack([real(i["printed_delta_h2"]), real(i["printed_delta_h3"])])
    before = torch.stack([real(i["printed_h1"]), real(i["printed_h2"])])
    layer = nn.Linear(3, 3, bias=False).double()
    layer.weight.data, layer.weight.grad = real(W_HH), back.w_hh
    SGD(lr=i["learning_rate"], momentum=0.0).build(layer).step()
    return {
        "dW_hh": back.w_hh,
        "dW_hh_from_printed": output_backward(before, real(W_HH), deltas)[1],
        "dW_xh": back.w_xh,
        "dW_hy": dw_hy,
        "db_h": back.b_h,
        "db_y": db_y[0],
        "W_hh_after_step_lr_0.1": layer.weight.data,
    }


def jacobian_product(i: Inputs) -> Inputs:
    w, x, h = trace(i)

    def last(h_1: Tensor) -> Tensor:
        return states(x[1:], h_1, w)[-1]

    found = product(step_jacobians(h[2:], w.w_hh))
    automatic = torch.autograd.functional.jacobian(last, h[1])
    return {
        "max_abs_difference": (found - automatic).abs().max(),
        "dh3_dh1": found,
        "dL_dh1_for_L_sum_h3": found.sum(0),
    }


def memory(i: Inputs) -> Inputs:
    t, size, each = i["T"], i["d_h"], i["bytes_per_float"]
    return {
        "MB_per_sequence": state_megabytes(t, size, 1, each),
        "MB_batch_32": state_megabytes(t, size, i["batch"], each),
        "truncated_tau50_MB_per_sequence": state_megabytes(t, size, 1, each, tau=50),
    }


EXAMPLES: dict[str, Compute] = {
    "DLN-RecurrentNeuron-cell-code": cell_code,
    "VOM-6.3-rnn-step1": trace_step(1),
    "VOM-6.3-rnn-step2": trace_step(2),
    "VOM-6.3-rnn-step3": trace_step(3),
    "DLN-BPTT-gradient-sum": gradient_sum,
    "MF-15.4-bptt-formulas": all_steps,
    "MF-21.1.2-t1": forward_step(1),
    "MF-21.1.2-t2": forward_step(2),
    "MF-21.1.2-t3": forward_step(3),
    "MF-21.1.3-loss": loss_at_the_end,
    "MF-21.1.4-dy3": output_delta,
    "MF-21.1.4-dh3": hidden_delta_3,
    "MF-21.1.4-dh2": hidden_delta_2,
    "MF-21.1.4-dh1": hidden_delta_1,
    "MF-21.1.4-dWhh": summed_gradient,
    "VOM-6.4-jacobian-product": jacobian_product,
    "MF-15.6.3-bptt-memory": memory,
}

SET_ASIDE: dict[str, str] = {}
