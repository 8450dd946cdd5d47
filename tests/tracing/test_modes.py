"""Tangents, adjoints and local Jacobians against torch.func, and against each other."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from descend.errors import Mistake
from descend.tracing.modes import differentiate, measure_disagreement
from descend.tracing.record import record
from tests.close import close


def normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def network(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
    h = (x @ w).tanh()
    p = (h @ v).softmax(-1)
    return -(p * p.log()).sum() + h.square().mean()


INPUTS = (normal(2, 3, seed=0), normal(3, 4, seed=1), normal(4, 2, seed=2))


def test_forward_mode_is_torchs_jvp() -> None:
    program = record(network, INPUTS, lambda y: y)
    for i, name in enumerate(("x", "w", "v")):
        found = differentiate(program, name)
        tangents = tuple(torch.ones_like(x) if i == j else torch.zeros_like(x) for j, x in enumerate(INPUTS))
        close(found.tangents[program.output], torch.func.jvp(network, INPUTS, tangents)[1])
    unit = torch.zeros_like(INPUTS[1])
    unit[2, 1] = 1
    zeros = (torch.zeros_like(INPUTS[0]), unit, torch.zeros_like(INPUTS[2]))
    close(differentiate(program, "w[2,1]").tangents[program.output], torch.func.jvp(network, INPUTS, zeros)[1])


def test_reverse_mode_is_torchs_grad() -> None:
    program = record(network, INPUTS, lambda y: y)
    found = differentiate(program)
    for ours, theirs in zip(found.adjoints[:3], torch.func.grad(network, (0, 1, 2))(*INPUTS), strict=True):
        close(ours, theirs)


def test_both_modes_at_every_node() -> None:
    """⟨adjoint, tangent⟩ over any cut is the derivative; sums of pushes and pulls are tangents and adjoints."""
    program = record(network, INPUTS, lambda y: y)
    found = differentiate(program, "x")
    total = found.tangents[program.output]
    assert total is not None
    h = program.find_value("h")
    tangent, adjoint = found.tangents[h.index], found.adjoints[h.index]
    assert tangent is not None
    assert adjoint is not None
    close((tangent * adjoint).sum(), total)
    sent = torch.zeros_like(h.value)
    for node in program.operations:
        pushes = [edge.push for edge in found.edges[node.index] if edge.push is not None]
        if pushes:
            close(sum(pushes), found.tangents[node.index])
        for edge in found.edges[node.index]:
            if edge.parent == h.index and edge.pull is not None:
                sent = sent + edge.pull
            if edge.jacobian is not None and edge.pull is not None and edge.pull.abs().max() > 0:
                bar = found.adjoints[node.index]
                assert bar is not None
                close(edge.pull.flatten(), edge.jacobian.T @ bar.flatten())
            if edge.jacobian is not None and edge.push is not None and edge.push.abs().max() > 1e-12:
                dot = found.tangents[edge.parent]
                assert dot is not None
                close(edge.push.flatten(), edge.jacobian @ dot.flatten())
    close(sent, adjoint)


def test_local_jacobians() -> None:
    program = record(lambda x: F.softmax(x, 0).square().sum(), [normal(3, seed=4)], lambda y: y)
    found = differentiate(program)
    p = program.nodes[1].value
    close(found.edges[1][0].jacobian, p.diag() - torch.outer(p, p))
    big = record(lambda x: (x * 2).sum(), [normal(30, seed=1)], lambda y: y)
    edges = differentiate(big).edges
    assert edges[1][0].jacobian is None  # 900 entries: only its action
    assert edges[2][0].jacobian is not None
    close(edges[1][0].pull, torch.full((30,), 2.0, dtype=torch.float64))


def test_wrong_directions() -> None:
    program = record(network, INPUTS, lambda y: y)
    with pytest.raises(Mistake, match=r"there is no 'z'.*Choose x, w, v"):
        differentiate(program, "z")
    with pytest.raises(Mistake, match=r"x has shape \(2, 3\)"):
        differentiate(program, "x[9,9]")
    with pytest.raises(Mistake, match=r"x has shape \(2, 3\)"):
        differentiate(program, "x[a]")


def test_a_wrong_gradient_is_noticed() -> None:
    program = record(network, INPUTS, lambda y: y)
    found = differentiate(program)
    assert measure_disagreement(program, found) < 1e-12
    adjoint = found.adjoints[1]
    assert adjoint is not None
    found.adjoints[1] = 1.01 * adjoint
    assert measure_disagreement(program, found) > 1e-3
    found.adjoints[1] = torch.full_like(adjoint, float("nan"))
    assert measure_disagreement(program, found) == float("inf")
    infinite = record(lambda x: x.log(), [torch.zeros((), dtype=torch.float64)], lambda y: y)
    assert measure_disagreement(infinite, differentiate(infinite)) == 0
