"""State-space layers: recurrence, convolution and scan give one answer."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from descend.ops import state_space
from descend.ops.state_space import (
    convolution,
    hold,
    kernel,
    pairs,
    recurrence,
    scan,
    scan_steps,
    selective,
    selective_step,
)
from tests.close import close


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape)), dtype=torch.float64)


@pytest.mark.system("state-space-layer")
@pytest.mark.system("state-space-layer", "convolution")
@pytest.mark.system("mamba")
@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.integers(1, 40), st.integers(1, 3), st.integers(1, 3))
def test_recurrence_is_convolution(t: int, d: int, n: int) -> None:
    a, b = hold(-drawn(d, n).exp(), drawn(d, n, seed=1), drawn(d, 1, seed=2).exp() / 5)
    c, u = drawn(d, n, seed=3), drawn(2, t, d)
    y = recurrence(a, b, c, u)
    close(convolution(kernel(a, b, c, t), u), y)
    k = kernel(a, b, c, t)
    direct = torch.stack([sum(k[i - s] * u[:, s] for s in range(i + 1)) for i in range(t)], dim=1)  # type: ignore[misc]
    close(direct, y)


@pytest.mark.system("state-space-layer")
@pytest.mark.system("state-space-layer", "discretised")
def test_zero_order_hold_solves_the_equation() -> None:
    """x' = a x + b u with u held: the exponential of [[a, b], [0, 0]] Δ has Ā and B̄ in its first row."""
    a, b, delta = -drawn(3).exp(), drawn(3, seed=1), torch.tensor(0.3, dtype=torch.float64)
    a_bar, b_bar = hold(a, b, delta)
    for i in range(3):
        whole = torch.linalg.matrix_exp(delta * torch.stack([torch.stack([a[i], b[i]]), torch.zeros(2).double()]))
        close(torch.stack([a_bar[i], b_bar[i]]), whole[0])


@pytest.mark.system("mamba")
@pytest.mark.system("mamba", "scan")
@pytest.mark.parametrize("wide", [0, 4096])
@pytest.mark.parametrize("t", [1, 2, 3, 8, 13])
def test_scan_is_steps_with_its_gradient(t: int, wide: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_space, "WIDE", wide)
    a, b = drawn(t, 2, 3).sigmoid().requires_grad_(), drawn(t, 2, 3, seed=5).requires_grad_()
    close(scan(a, b), scan_steps(a, b))
    close(pairs(a.detach(), b.detach()), scan_steps(a, b))
    assert torch.autograd.gradcheck(scan, (a, b))
    g = drawn(t, 2, 3, seed=7)
    for ours, theirs in zip(
        torch.autograd.grad((scan(a, b) * g).sum(), [a, b]),
        torch.autograd.grad((scan_steps(a, b) * g).sum(), [a, b], allow_unused=True),
        strict=True,
    ):
        close(ours, torch.zeros_like(ours) if theirs is None else theirs)


@pytest.mark.system("mamba")
@pytest.mark.system("mamba", "selective", "fixed")
def test_selective_is_its_steps_and_with_fixed_choices_a_convolution() -> None:
    b, t, d, n = 2, 9, 3, 4
    u, delta, a = drawn(b, t, d), drawn(b, t, d, seed=1).exp() / 3, -drawn(d, n).exp()
    writes, reads = drawn(b, t, n), drawn(b, t, n, seed=2)
    y, last = selective(u, delta, a, writes, reads)
    h = torch.zeros(b, d, n).double()
    for i in range(t):
        found, h = selective_step(h, u[:, i], delta[:, i], a, writes[:, i], reads[:, i])
        close(found, y[:, i])
    close(h, last)
    fixed_b, fixed_c, step = drawn(n), drawn(n, seed=4), torch.full((b, t, d), 0.2, dtype=torch.float64)
    y, _ = selective(u, step, a, fixed_b.expand(b, t, n), fixed_c.expand(b, t, n))
    k = kernel((0.2 * a).exp(), 0.2 * fixed_b.expand(d, n), fixed_c.expand(d, n), t)
    close(convolution(k, u), y)


class Work(TorchDispatchMode):
    """The numbers that all operations write."""

    def __init__(self) -> None:
        super().__init__()
        self.written = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        self.written += sum(x.numel() for x in (found if isinstance(found, tuple) else (found,)) if hasattr(x, "numel"))
        return found


@pytest.mark.system("state-space-layer", "linear")
@pytest.mark.system("mamba", "linear")
@pytest.mark.parametrize("form", ["recurrence", "selective"])
def test_work_grows_linearly_with_the_length(form: str) -> None:
    """Twice the length costs twice the numbers, where attention would cost four times."""
    d, n = 3, 4

    def cost(t: int) -> int:
        u, a = drawn(2, t, d), -drawn(d, n).exp()
        with Work() as work:
            if form == "recurrence":
                recurrence(*hold(a, drawn(d, n), torch.tensor(0.1)), drawn(d, n, seed=3), u)
            else:
                selective(u, u.exp() / 3, a, drawn(2, t, n), drawn(2, t, n, seed=2))
        return work.written

    assert cost(512) / cost(256) == pytest.approx(2, rel=0.05)
    assert cost(256) / cost(128) == pytest.approx(2, rel=0.05)
