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

from descend.labs._evidence import Above, AtLeast, AtMost
from descend.nn.init import forget_bias_, orthogonal_

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("MF-B.9", "S940-DLD.62", "VOM-A.61", "S940-DLD.65")
PRINTED = (
    "ρ < 1 vanishes, ρ > 1 explodes (errata: norm and radius are exchanged, and above 1 is only"
    " necessary: tanh may vanish); the LSTM's direct path has factors f_t."
)
CLAIM = (
    "Going back in time, the gradient of a linear recurrent net falls or grows as ρ^distance; tanh only makes it"
    " smaller, so that even ρ above 1 may vanish; an LSTM with open forget gates loses far less than a tanh net."
)
PREDICTIONS = (
    AtMost(
        "linear off",
        0.01,
        "The largest relative distance of a linear net's gradient from ρ^distance.",
    ),
    AtMost(
        "tanh over linear",
        1.001,
        "The largest ratio of a tanh net's gradient to the linear one's.",
    ),
    AtMost(
        "tanh at 1.1",
        0.5,
        "What is left with ρ = 1.1 under tanh, over the linear net's: it does not explode.",
    ),
    Above("order of LSTMs", 0, "The least gain from a larger forget bias: 0, 1, 4."),
    AtLeast("open LSTM", 100, "What an LSTM with bias 4 keeps over a tanh net of ρ = 0.9."),
)
PRINTED_PREDICTIONS = (AtLeast("tanh at 1.1", 0.5, "The printed form: ρ above 1 explodes, under tanh too."),)
SCOPE = "Nets of 32 units on random inputs, 50 steps; nothing is trained."
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


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    curves, far = numbers["curves"], STEPS - 1
    nets = [(rho, curves[f"linear, ρ = {rho}"], curves[f"tanh, ρ = {rho}"]) for rho in RADII]
    none, one, four = (curves[f"LSTM, b_f = {b}"][far] for b in (0, 1, 4))
    return {
        "linear off": max(abs(value / rho**d - 1) for rho, linear, _ in nets for d, value in enumerate(linear)),
        "tanh over linear": max(a / b for _, linear, tanh in nets for a, b in zip(tanh, linear, strict=True)),
        "tanh at 1.1": curves["tanh, ρ = 1.1"][far] / curves["linear, ρ = 1.1"][far],
        "order of LSTMs": min(one - none, four - one),
        "open LSTM": four / curves["tanh, ρ = 0.9"][far],
    }


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
