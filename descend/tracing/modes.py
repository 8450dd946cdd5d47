"""Both modes on a recorded program, operation by operation, with torch's own derivatives of each operation.

    forward    ẏ = Σ_k J_k ẋ_k             J_k the local Jacobian in parent k; each product is the parent's `push`
    reverse    x̄_k += J_kᵀ ȳ               each product is what the node sends to parent k, its `pull`

The push of an operation is torch's forward mode. Where torch has no such rule for it, the push is the derivative of the
linear map ȳ ↦ Jᵀȳ (two backward passes), and where that cannot be differentiated either, J itself, row by row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.autograd import forward_ad

from descend.errors import Mistake, nearest
from descend.tracing.program import Program, TraceNode, compute

JACOBIAN = 400  # entries of a local Jacobian that is still written out
ROWS = 20_000  # rows of a Jacobian that is built only to have a push at all


@dataclass
class Edge:
    """From a parent into a node: the local Jacobian (rows: the node, columns: the parent) and its two actions."""

    parent: int
    jacobian: Tensor | None = None
    push: Tensor | None = None
    pull: Tensor | None = None


@dataclass
class Derivatives:
    """Of every node, in the order of the program; None where nothing flows."""

    tangents: list[Tensor | None]
    adjoints: list[Tensor | None]
    edges: list[list[Edge]]
    along: str
    without_rule: list[str] = field(default_factory=list)
    """Operations for which torch has no forward rule, and which have no tangent."""


def differentiate(program: Program, along: str = "") -> Derivatives:
    """Tangents along a leaf (`x`, or one element of it: `x[0,1]`), adjoints of the output, and all local Jacobians."""
    start, name = seed_tangents(program, along)
    edges = [[Edge(parent) for parent in node.parents] for node in program.nodes]
    found = Derivatives(start, [None] * len(program.nodes), edges, name)
    for node in program.operations:
        forward(program, node, found)
    found.adjoints[program.output] = torch.ones_like(program.nodes[program.output].value)
    for node in reversed(program.operations):
        reverse(program, node, found)
    for node in program.operations:
        fill_jacobians(program, node, found.edges[node.index])
    return found


def seed_tangents(program: Program, along: str) -> tuple[list[Tensor | None], str]:
    """The tangents to start from: 1 for the leaf (or the element) asked for, 0 for the rest."""
    tangents: list[Tensor | None] = [None] * len(program.nodes)
    name, _, index = along.partition("[")
    names = [node.name for node in program.sources]
    if along and name not in names:
        raise Mistake(f"--along {along}: there is no {name!r}.{nearest(name, names)} Choose {', '.join(names[:8])}")
    node = program.sources[names.index(name) if along else 0]
    if not index:
        tangents[node.index] = torch.ones_like(node.value)
        return tangents, node.name
    unit = torch.zeros_like(node.value)
    try:
        unit[tuple(int(i) for i in index.rstrip("]").split(","))] = 1
    except (ValueError, IndexError):
        shape = tuple(node.value.shape)
        raise Mistake(f"--along {along}: {name} has shape {shape}; give an index such as {name}[0]") from None
    tangents[node.index] = unit
    return tangents, along


def take_inputs(program: Program, node: TraceNode) -> list[Tensor]:
    return [program.nodes[parent].value for parent in node.parents]


def carries_gradient(program: Program, node: TraceNode, k: int) -> bool:
    """Whether a derivative passes from parent k into the node."""
    return not node.frozen and node.value.is_floating_point() and program.nodes[node.parents[k]].differentiable


def forward(program: Program, node: TraceNode, found: Derivatives) -> None:
    """The tangent of a node, parent by parent."""
    values = take_inputs(program, node)
    for k, edge in enumerate(found.edges[node.index]):
        tangent = found.tangents[edge.parent]
        if tangent is not None and carries_gradient(program, node, k):
            edge.push = push(node, values, k, tangent)
            if edge.push is None and node.op not in found.without_rule:
                found.without_rule.append(node.op)
    pushes = [edge.push for edge in found.edges[node.index] if edge.push is not None]
    if pushes:
        found.tangents[node.index] = torch.stack(pushes).sum(dim=0)


def push(node: TraceNode, values: Sequence[Tensor], k: int, tangent: Tensor) -> Tensor | None:
    """J_k ẋ"""
    try:
        return push_forward(node, values, k, tangent)
    except (RuntimeError, NotImplementedError):
        pass
    try:
        return push_by_two_pulls(node, values, k, tangent)
    except (RuntimeError, NotImplementedError):
        pass
    if node.value.numel() > ROWS:
        return None
    x, y = open_input(node, values, k)
    units = torch.eye(y.numel(), dtype=y.dtype)
    parts = [(torch.autograd.grad(y, x, e.view_as(y), retain_graph=True)[0] * tangent).sum() for e in units]
    return torch.stack(parts).view_as(y)


def push_forward(node: TraceNode, values: Sequence[Tensor], k: int, tangent: Tensor) -> Tensor:
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(x, tangent) if i == k else x for i, x in enumerate(values)]
        found = forward_ad.unpack_dual(compute(node, duals)).tangent
        return torch.zeros_like(node.value) if found is None else found.clone()


def push_by_two_pulls(node: TraceNode, values: Sequence[Tensor], k: int, tangent: Tensor) -> Tensor:
    """d/dȳ ⟨Jᵀȳ, ẋ⟩ = J ẋ"""
    x, y = open_input(node, values, k)
    y_bar = torch.zeros_like(y, requires_grad=True)
    x_bar = torch.autograd.grad(y, x, y_bar, create_graph=True)[0]
    return torch.autograd.grad((x_bar * tangent).sum(), y_bar)[0]


def open_input(node: TraceNode, values: Sequence[Tensor], k: int) -> tuple[Tensor, Tensor]:
    """Parent k as a leaf of autograd, and the node computed from it."""
    x = values[k].detach().requires_grad_()
    with torch.enable_grad():
        return x, compute(node, [x if i == k else v for i, v in enumerate(values)])


def reverse(program: Program, node: TraceNode, found: Derivatives) -> None:
    """What a node sends to its parents, added to their adjoints."""
    adjoint = found.adjoints[node.index]
    reached = [k for k in range(len(node.parents)) if carries_gradient(program, node, k)]
    if adjoint is None or not reached:
        return
    for k, pull in zip(reached, pull_back(node, take_inputs(program, node), reached, adjoint), strict=True):
        edge = found.edges[node.index][k]
        edge.pull = pull
        before = found.adjoints[edge.parent]
        found.adjoints[edge.parent] = pull if before is None else before + pull


def pull_back(node: TraceNode, values: Sequence[Tensor], reached: Sequence[int], adjoint: Tensor) -> tuple[Tensor, ...]:
    """J_kᵀ ȳ of several parents, in one backward pass."""
    fresh = [x.detach().requires_grad_() if k in reached else x for k, x in enumerate(values)]
    with torch.enable_grad():
        y = compute(node, fresh)
    sources = [fresh[k] for k in reached]
    if not y.requires_grad:
        return tuple(torch.zeros_like(x) for x in sources)
    return torch.autograd.grad(y, sources, adjoint, allow_unused=True, materialize_grads=True)


def fill_jacobians(program: Program, node: TraceNode, edges: Sequence[Edge]) -> None:
    """The local Jacobians that are small enough to be written out, one backward pass for each row."""
    values, size = take_inputs(program, node), node.value.numel()
    for k, edge in enumerate(edges):
        columns = values[k].numel()
        if carries_gradient(program, node, k) and 0 < size * columns <= JACOBIAN:
            units = torch.eye(size, dtype=node.value.dtype)
            rows = [pull_back(node, values, [k], e.view_as(node.value))[0].flatten() for e in units]
            edge.jacobian = torch.stack(rows)


def measure_disagreement(program: Program, found: Derivatives) -> float:
    """The largest difference between these gradients and autograd's in the recorded run, relative to the latter.

    Where both are infinite or both are no number, they agree; where one alone is, the difference is infinite.
    """
    worst, scale = 0.0, 1e-30
    for index, theirs in program.torch_gradients.items():
        adjoint = found.adjoints[index]
        ours = torch.zeros_like(theirs) if adjoint is None else adjoint
        same = (ours == theirs) | (ours.isnan() & theirs.isnan())
        gap = (ours - theirs).abs().masked_fill(same, 0).nan_to_num(math.inf, math.inf)
        if gap.numel():
            worst = max(worst, float(gap.max()))
            scale = max(scale, float(theirs.masked_fill(~theirs.isfinite(), 0).abs().max()))
    return worst / scale
