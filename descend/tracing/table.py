"""A trace as plain text and as JSON. Tensors too large to show are summarised."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from descend.tracing.modes import Edge
from descend.tracing.program import Program, TraceNode

if TYPE_CHECKING:
    from descend.tracing.cost import ModeCost
    from descend.tracing.result import Trace

SHORT, WHOLE, FIRST = 6, 64, 8  # numbers in a table's cell, in JSON, and of a tensor that is too large for it


def format_number(x: float) -> str:
    return f"{x + 0.0:.4g}"  # + 0.0: no -0


def format_cell(x: Tensor | None) -> str:
    """A tensor in a few characters."""
    if x is None:
        return ""
    if x.numel() <= SHORT:
        return format_values(x.tolist())
    shape = "x".join(map(str, x.shape))
    if not x.is_floating_point():
        return f"{shape}: {format_values(x.flatten()[:3].tolist())[1:-1]}, .."
    return f"{shape}: mean {x.mean():.3g}, std {x.std(correction=0):.3g}"


def format_values(values: Any) -> str:
    """Nested lists with four digits."""
    if isinstance(values, list):
        return f"[{', '.join(map(format_values, values))}]"
    return format_number(values) if isinstance(values, float) else str(values)


def format_operation(program: Program, node: TraceNode) -> str:
    """mul(x, y); the kind of a leaf."""
    if node.leaf:
        return node.kind
    return node.form.format(*(program.nodes[p].name for p in node.parents))


def format_jacobians(program: Program, edges: Sequence[Edge]) -> str:
    """The local Jacobians that fit into a cell; of the others the shape."""
    parts = []
    for edge in edges:
        if edge.jacobian is not None:
            j, name = edge.jacobian, program.nodes[edge.parent].name
            rows = j.tolist()
            small = rows[0] if len(rows) == 1 else rows
            text = format_values(small[0] if len(rows) == 1 and len(small) == 1 else small)
            parts.append(f"{name}: {text if j.numel() <= SHORT else 'x'.join(map(str, j.shape))}")
    return "; ".join(parts)


def align_columns(columns: Sequence[str], rows: Sequence[Sequence[str]], right: set[int]) -> str:
    """Columns of text; those in `right` end together."""
    lines = [list(columns), *map(list, rows)]
    widths = [max(len(line[j]) for line in lines) for j in range(len(columns))]
    pad = [(lambda s, w: s.rjust(w)) if j in right else (lambda s, w: s.ljust(w)) for j in range(len(columns))]
    return "\n".join("  ".join(pad[j](s, widths[j]) for j, s in enumerate(line)).rstrip() for line in lines)


def format_trace(trace: Trace) -> str:
    """Nodes in the order of evaluation, the check against autograd, and the cost of each mode."""
    program, found = trace.program, trace.derivatives
    rows = [
        [
            str(node.index + 1),
            node.name,
            shorten(format_operation(program, node), 44),
            format_cell(node.value),
            format_cell(found.tangents[node.index]),
            format_cell(found.adjoints[node.index]),
            shorten(format_jacobians(program, found.edges[node.index]), 48),
        ]
        for node in program.nodes
    ]
    columns = ["#", "name", "operation", "value", f"tangent along {found.along}", "adjoint", "local Jacobian"]
    parts = [align_columns(columns, rows, {0}), "\n".join(list_notes(trace)), format_costs(trace.costs)]
    return "\n\n".join([program.title, *parts] if program.title else parts)


def list_notes(trace: Trace) -> list[str]:
    """What a reader must know about the run."""
    lines = [trace.check]
    if trace.program.skipped:
        lines.append(f"{trace.program.skipped} more operations ran that do not reach the result")
    if trace.derivatives.without_rule:
        lines.append(f"torch has no forward rule for {', '.join(trace.derivatives.without_rule)}: no tangent after it")
    return lines


def shorten(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 2] + ".."


def format_costs(found: Sequence[ModeCost]) -> str:
    rows = [list(map(str, format_cost(cost))) for cost in found]
    return align_columns(
        ["mode", "passes for the gradient", "FLOPs a pass", "time a pass", "memory"], rows, {1, 2, 3, 4}
    )


def format_cost(cost: ModeCost) -> list[str]:
    seconds = "" if cost.seconds is None else f"{1000 * cost.seconds:.3g} ms"
    return [
        cost.mode,
        f"{cost.passes:,}" if cost.passes else "",
        format_count(cost.flops),
        seconds,
        f"{format_count(cost.memory)} B",
    ]


def format_count(n: int | None) -> str:
    return "" if n is None else f"{n:,}"


def to_plain(x: Tensor | None) -> dict[str, Any] | None:
    """A tensor for JSON: all of its numbers, or a summary and the first few."""
    if x is None:
        return None
    found: dict[str, Any] = {"shape": list(x.shape)}
    if x.numel() <= WHOLE:
        return {**found, "values": to_finite(x.tolist())}
    first = to_finite(x.flatten()[:FIRST].tolist())
    if not x.is_floating_point():
        return {**found, "first": first}
    spread = {"mean": x.mean(), "std": x.std(correction=0), "min": x.min(), "max": x.max()}
    return {**found, **{name: to_finite(float(v)) for name, v in spread.items()}, "first": first}


def to_finite(value: Any) -> Any:
    """nan and inf as words: JSON has no such numbers."""
    if isinstance(value, list):
        return [to_finite(v) for v in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def to_matrix(x: Tensor | None) -> Any:
    return None if x is None else to_finite(x.tolist())


def as_json(trace: Trace) -> dict[str, Any]:
    """Everything, ready for JSON."""
    program, found = trace.program, trace.derivatives
    nodes = [
        {
            "index": node.index,
            "name": node.name,
            "kind": node.kind,
            "operation": format_operation(program, node),
            "module": node.where,
            "value": to_plain(node.value),
            "tangent": to_plain(found.tangents[node.index]),
            "adjoint": to_plain(found.adjoints[node.index]),
            "parents": [
                {
                    "index": edge.parent,
                    "jacobian": to_matrix(edge.jacobian),
                    "push": to_plain(edge.push),
                    "pull": to_plain(edge.pull),
                }
                for edge in found.edges[node.index]
            ],
        }
        for node in program.nodes
    ]
    return {
        "title": program.title,
        "along": found.along,
        "output": program.output,
        "result": to_finite(trace.result),
        "check": trace.check,
        "notes": list_notes(trace)[1:],
        "gap": to_finite(trace.gap),
        "nodes": nodes,
        "costs": [cost._asdict() for cost in trace.costs],
    }
