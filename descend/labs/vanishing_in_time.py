"""Vanishing and exploding in time: how much of a step's gradient is left after this many steps back.

    ∂h_T/∂h_t = Π_{j=T..t+1} diag(σ'(z_j)) W_hh,     ‖·‖ ≤ (max σ' · ‖W_hh‖)^(T-t)
    linear, ‖·‖ = ρ^(T-t) for W_hh = ρ Q, Q orthogonal          tanh multiplies by slopes ≤ 1, so ρ > 1 need not explode
    LSTM, along the cell: ∂c_T/∂c_t has Π f_j as its direct path, near 1 where the forget gates are open

Measured for nets of 32 units that read random inputs: linear and tanh nets with ρ = 0.9, 1 and 1.1, a GRU, and LSTMs
with forget biases of 0, 1 and 4. Each curve is ‖∂(state at T)/∂(state at t)‖₂, mean over sequences.

Errata: MF 15.5.2 exchanges norm and spectral radius; S940 4.2 says that norms above 1 explode, which is only necessary:
the tanh net with ρ = 1.1 shows it.

Systems: vanishing-exploding-in-time, lstm-gradient-highway
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from descend.nn.init import forget_bias_, orthogonal_

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLAIM = (
    "Going back in time, the gradient of a linear recurrent net falls or grows as ρ^distance; tanh only makes it"
    " smaller, so that even ρ above 1 may vanish; an LSTM with open forget gates loses far less than a tanh net."
)
UNITS, INPUTS, STEPS = 32, 8, 50
RADII = (0.9, 1.0, 1.1)
BUDGET = 2.0
PRICE = 32  # sequences that a second of one core buys


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Norms of ∂state_T/∂state_t by distance for every net."""
    sequences = max(4, round(PRICE * budget))
    torch.manual_seed(seed)
    x = torch.randn(sequences, STEPS, INPUTS)
    curves = {}
    for rho in RADII:
        for name, activation in (("linear", lambda z: z), ("tanh", torch.tanh)):
            curves[f"{name}, ρ = {rho}"] = norms(net(rho, activation), x, UNITS)
    curves["GRU"] = norms(nn.GRUCell(INPUTS, UNITS), x, UNITS)
    for bias in (0.0, 1.0, 4.0):
        curves[f"LSTM, b_f = {bias:g}"] = norms(cell_of_lstm(bias), x, 2 * UNITS, of=UNITS)
    return {"distance": list(range(STEPS)), "curves": curves, "sequences": sequences, "units": UNITS}


Step = Callable[[Tensor, Tensor], Tensor]


def net(rho: float, activation: Callable[[Tensor], Tensor]) -> Step:
    """h ↦ σ(W_hh h + W_xh x) with W_hh = ρ Q and small inputs, so that the slopes are near 1 at the start."""
    w, w_x = rho * orthogonal_(torch.empty(UNITS, UNITS)), 0.1 * torch.randn(UNITS, INPUTS)
    return lambda x, h: activation(h @ w.T + x @ w_x.T)


def cell_of_lstm(bias: float) -> Step:
    """A step of an LSTM whose state is [c; h]."""
    cell = nn.LSTMCell(INPUTS, UNITS)
    forget_bias_(cell, bias)

    def step(x: Tensor, state: Tensor) -> Tensor:
        c, h = state.chunk(2, dim=-1)
        h, c = cell(x, (h, c))
        return torch.cat([c, h], dim=-1)

    return step


def norms(step: Step, x: Tensor, size: int, of: int = 0) -> list[float]:
    """‖∂s_T/∂s_t‖₂ for T - t = 0 .. STEPS - 1, mean over sequences; `of` takes the first numbers of the state only.

    One step's Jacobian comes from autograd; their product is built from the end.
    """
    state, jacobians = torch.zeros(len(x), size), []
    one = torch.func.vmap(torch.func.jacrev(lambda x_t, s: step(x_t[None], s[None])[0], argnums=1))
    for x_t in x.unbind(1):
        jacobians.append(one(x_t, state).detach())
        state = step(x_t, state).detach()
    product = torch.eye(size).expand(len(x), size, size)
    found, part = [], of or size
    for j in reversed(jacobians):
        found.append(float(torch.linalg.matrix_norm(product[:, :part, :part], ord=2).mean()))
        product = product @ j
    return found


def verdict(numbers: dict[str, Any]) -> str:
    """Refuted if a part of the claim fails: linear nets follow ρ^distance within 1%, no tanh net is above its linear
    one, the tanh net of ρ = 1.1 does not explode, and the LSTM with b_f = 4 keeps 100 times more than the tanh net of
    ρ = 0.9 over all steps, the one with b_f = 1 more than the one with b_f = 0.
    """
    curves, far = numbers["curves"], STEPS - 1
    for rho in RADII:
        linear, tanh = curves[f"linear, ρ = {rho}"], curves[f"tanh, ρ = {rho}"]
        if any(abs(value / rho**d - 1) > 0.01 for d, value in enumerate(linear)):
            return "refuted"
        if any(a > b * 1.001 for a, b in zip(tanh, linear, strict=True)):
            return "refuted"
    kept = [curves[f"LSTM, b_f = {b}"][far] for b in (0, 1, 4)]
    grows = curves["tanh, ρ = 1.1"][far] > 0.5 * curves["linear, ρ = 1.1"][far]
    faded = curves["tanh, ρ = 0.9"][far]
    return "refuted" if grows or not kept[0] < kept[1] < kept[2] or kept[2] < 100 * faded else "supported"


def figure(numbers: dict[str, Any]) -> Figure:
    """All curves against the distance, on a logarithmic scale."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(8, 4.5), layout="constrained")
    axes = fig.subplots()
    for name, values in numbers["curves"].items():
        style = {"l": ":", "t": "-", "G": "--", "L": "-."}[name[0]]
        axes.plot(numbers["distance"], values, style, label=name)
    axes.set_yscale("log")
    axes.set_ylim(1e-12, 1e3)
    axes.set_xlabel("steps back")
    axes.set_ylabel("norm of the Jacobian")
    axes.legend(frameon=False, fontsize=8, ncols=2)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
