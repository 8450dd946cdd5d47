"""A trace as a page to click through: the graph, one node in full, both modes step by step; all in one file."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from descend.tracing.layout import HIGH, WIDE, GraphLayout, Position, lay_out
from descend.tracing.program import TraceNode
from descend.tracing.table import as_json, format_cell, format_cost, format_operation, list_notes, shorten
from descend.web.markup import Html, embed_json, html
from descend.web.page import make_page
from descend.web.parts import make_card, make_header

if TYPE_CHECKING:
    from descend.tracing.result import Trace

STYLE = """
.descend { main { max-width: 1500px; }
.trace { display: grid; grid-template-columns: minmax(0, 3fr) minmax(330px, 2fr); gap: 16px; align-items: start; }
.board { overflow: auto; max-height: 78vh; padding: 10px; }
.board svg { width: auto; margin: 0 auto; max-width: none; }
.panel { position: sticky; top: 12px; max-height: 78vh; overflow: auto; }
.node { cursor: pointer; } .node rect { fill: var(--page); stroke: var(--line); stroke-width: 1.2; }
.node text { text-anchor: middle; fill: var(--ink); font-size: 12px; font-weight: 600; }
.node text.op { fill: var(--soft); font-weight: 400; font-size: 10.5px; }
.node.input rect, .node.parameter rect { rx: 17; } .node.constant rect { stroke-dasharray: 3 3; }
.node.ahead { opacity: .32; } .node.current rect { stroke: var(--c1); stroke-width: 2.6; }
.node.filled rect { fill: color-mix(in srgb, var(--c0) 13%, var(--card)); stroke: var(--c0); }
.node.pulled rect { fill: color-mix(in srgb, var(--c2) 16%, var(--card)); stroke: var(--c2); }
.node.current rect { stroke: var(--c1); }
.node:focus { outline: none; } .node:focus rect { stroke: var(--c1); }
.edge { fill: none; stroke: var(--soft); stroke-opacity: .4; stroke-width: 1.3; }
.edge.on { stroke: var(--c1); stroke-opacity: 1; stroke-width: 2.4; }
.steps { display: flex; gap: 10px; align-items: center; margin-bottom: 12px; flex-wrap: wrap; }
.steps input { flex: 1; min-width: 120px; accent-color: var(--c1); }
.steps button { font: inherit; color: inherit; background: var(--page); border: 1px solid var(--line);
  border-radius: 8px; padding: 3px 12px; cursor: pointer; }
.phase { font-size: 12.5px; color: var(--soft); min-width: 14em; }
.panel h2 { margin: 0; font-size: 19px; } .panel .what { color: var(--soft); font: 13px var(--mono);
  overflow-wrap: anywhere; margin: 2px 0 12px; }
.panel h3 { margin: 14px 0 4px; } .panel .from { color: var(--soft); font-size: 12.5px; margin: 6px 0 1px; }
.numbers { overflow-x: auto; } .numbers table { font: 12.5px/1.5 var(--mono); }
.numbers td { border: 0; padding: 0 12px 0 0; text-align: right; }
.numbers p { margin: 0; font: 12.5px/1.5 var(--mono); overflow-wrap: anywhere; }
tr[data-node] { cursor: pointer; } tr.current td { color: var(--c1); }
td.mono { font: 12.5px/1.5 var(--mono); }
@media (max-width: 900px) { .trace { grid-template-columns: 1fr; } .panel { position: static; } } }
"""

SCRIPT = """
const data = JSON.parse(document.getElementById("trace-data").textContent), n = data.nodes.length;
const range = document.getElementById("step"), phase = document.getElementById("phase");
const panel = document.getElementById("panel"), boxes = [...document.querySelectorAll(".node")];
const lines = [...document.querySelectorAll(".edge")], rows = [...document.querySelectorAll("tr[data-node]")];
const children = data.nodes.map(() => []);
data.nodes.forEach(node => node.parents.forEach((edge, k) => children[edge.index].push([node, edge])));
const tag = (name, text) => Object.assign(document.createElement(name), { textContent: text ?? "" });
const digits = v => typeof v === "number" && !Number.isInteger(v) ? String(Number(v.toPrecision(6))) : String(v);
const grid = rows => {
  const table = tag("table");
  for (const row of rows) {
    const line = table.appendChild(tag("tr"));
    for (const v of row) line.appendChild(tag("td", digits(v)));
  }
  return table;
};
const numbers = t => {
  const box = Object.assign(tag("div"), { className: "numbers" });
  if (t.values === undefined) {
    const few = ["mean", "std", "min", "max"].filter(k => k in t).map(k => k + " " + digits(t[k])).join(", ");
    box.append(tag("p", "shape " + t.shape.join(" x ") + (few ? ": " + few : "")));
    box.append(tag("p", "first " + t.first.map(digits).join(", ") + ", .."));
  } else if (t.shape.length === 0) box.append(grid([[t.values]]));
  else if (t.shape.length === 1) box.append(grid([t.values]));
  else if (t.shape.length === 2) box.append(grid(t.values));
  else box.append(tag("p", JSON.stringify(t.values, (k, v) => typeof v === "number" ? Number(v.toPrecision(6)) : v)));
  return box;
};
const part = (title, ...content) => panel.append(tag("h3", title), ...content);
const from = (text, t) => { panel.append(Object.assign(tag("div", text), { className: "from" }), numbers(t)); };
const show = node => {
  panel.replaceChildren(tag("h2", node.name));
  const what = node.operation + (node.module ? "   in " + node.module : "");
  panel.append(Object.assign(tag("div", what), { className: "what" }));
  part("value", numbers(node.value));
  const local = node.parents.filter(edge => edge.jacobian || edge.pull || edge.push);
  if (local.length) {
    part("local Jacobian");
    for (const edge of local) {
      const name = "∂ " + node.name + " / ∂ " + data.nodes[edge.index].name;
      if (edge.jacobian) from(name, { shape: [0, 0], values: edge.jacobian });
      else panel.append(Object.assign(tag("div", name + ": too large to write out; its action is below"),
        { className: "from" }));
    }
  }
  part("tangent along " + data.along + ", by forward mode");
  if (node.tangent) {
    panel.append(numbers(node.tangent));
    for (const edge of node.parents) if (edge.push && node.parents.length > 1)
      from("J ẋ from " + data.nodes[edge.index].name, edge.push);
  } else panel.append(tag("p", "nothing flows here: 0"));
  part("adjoint, by reverse mode");
  if (node.adjoint) {
    panel.append(numbers(node.adjoint));
    const sent = children[node.index].filter(([, edge]) => edge.pull);
    for (const [child, edge] of sent) from("Jᵀ ȳ from " + child.name, edge.pull);
  } else panel.append(tag("p", "nothing flows here: 0"));
};
const at = s => s < n ? s : 2 * n - 1 - s;
const go = s => {
  s = Math.max(0, Math.min(2 * n - 1, s));
  range.value = s;
  const i = at(s), back = s >= n, node = data.nodes[i];
  phase.textContent = back ? `backward, step ${s - n + 1} of ${n}: adjoints` : `forward, step ${s + 1} of ${n}: values`;
  boxes.forEach((box, j) => {
    box.classList.toggle("current", j === i);
    box.classList.toggle("ahead", !back && j > i);
    box.classList.toggle("filled", back ? j < i : j <= i);
    box.classList.toggle("pulled", back && j >= i && !!data.nodes[j].adjoint);
  });
  rows.forEach((row, j) => row.classList.toggle("current", j === i));
  lines.forEach(line => line.classList.toggle("on", Number(back ? line.dataset.from : line.dataset.to) === i));
  show(node);
  const board = document.querySelector(".board"), frame = board.getBoundingClientRect();
  const box = boxes[i].getBoundingClientRect();
  if (box.top < frame.top || box.bottom > frame.bottom) board.scrollTop += box.top - frame.top - frame.height / 2;
  if (box.left < frame.left || box.right > frame.right) board.scrollLeft += box.left - frame.left - frame.width / 2;
};
const pick = i => go(Number(range.value) >= n ? 2 * n - 1 - i : i);
boxes.forEach((box, i) => box.addEventListener("click", () => pick(i)));
rows.forEach((row, i) => row.addEventListener("click", () => pick(i)));
range.addEventListener("input", () => go(Number(range.value)));
document.getElementById("back").addEventListener("click", () => go(Number(range.value) - 1));
document.getElementById("next").addEventListener("click", () => go(Number(range.value) + 1));
document.getElementById("turn").addEventListener("click", () => go(2 * n - 1 - Number(range.value)));
addEventListener("keydown", event => {
  if (event.target === range) return;
  const moves = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -2 * n, End: 2 * n };
  if (event.key in moves) { go(Number(range.value) + moves[event.key]); event.preventDefault(); }
  if (event.key === "t") go(2 * n - 1 - Number(range.value));
});
const wanted = Number((location.hash.match(/^#(\\d+)$/) || [])[1]);
go(Number.isInteger(wanted) ? wanted : 0);
"""


def make_trace_page(trace: Trace) -> Html:
    """The whole document."""
    return make_page(trace.program.title or "trace", make_body(trace))


def make_body(trace: Trace) -> Html:
    """The inside of a page: style, graph, panel, tables, data and script."""
    said = " ".join(f"{line[0].upper()}{line[1:]}." for line in list_notes(trace))
    about = (
        f"Result {trace.result:.6g}. {said} Click a node. → and ← step through the order of evaluation and then back"
        " through the order of the adjoints; t turns around."
    )
    steps = (
        '<div class="steps"><button id="back" title="←">←</button><button id="next" title="→">→</button>'
        '<button id="turn" title="t">turn around</button>'
        '<input id="step" type="range" min="0" max="{}" value="0" aria-label="step">'
        '<span class="phase" id="phase"></span></div>'
    )
    board = (
        '<div class="trace"><section class="card board">{}</section>'
        '<section class="card panel" id="panel" aria-live="polite"></section></div>'
    )
    return html(
        "<style>{}</style>{}{}{}{}{}{}<script>{{{}}}</script>",
        Html(STYLE),
        make_header(trace.program.title or "trace", about),
        html(steps, 2 * len(trace.program.nodes) - 1),
        html(board, draw_graph(trace)),
        make_card("All nodes", list_nodes(trace)),
        make_card("Cost of each mode", list_costs(trace)),
        embed_json("trace-data", as_json(trace)),
        Html(SCRIPT),
    )


def draw_graph(trace: Trace) -> Html:
    """The graph as SVG: a box for each node, a curve for each edge."""
    program, at = trace.program, lay_out(trace.program)
    points = [*at.nodes, *(bend for bends in at.bends.values() for bend in bends)]
    width = max(max(p.x for p in at.nodes) + WIDE / 2, max(p.x for p in points) + 10)
    height = max(p.y for p in at.nodes) + HIGH / 2
    edges = [draw_edge(at, parent, node.index) for node in program.nodes for parent in node.parents]
    boxes = [draw_node(node, at.nodes[node.index]) for node in program.nodes]
    frame = '<svg viewBox="0 0 {:g} {:g}" width="{:g}" height="{:g}">{}{}</svg>'
    return html(frame, width, height, width, height, edges, boxes)


def draw_edge(at: GraphLayout, parent: int, child: int) -> Html:
    """From below the parent to above the node, through the edge's bends."""
    (x, y), (u, v) = at.nodes[parent], at.nodes[child]
    points = [Position(x, y + 17), *at.bends[parent, child], Position(u, v - 17)]
    path = f"M{x:.1f} {y + 17:.1f}"
    for a, b in pairwise(points):
        middle = (a.y + b.y) / 2
        path += f"C{a.x:.1f} {middle:.1f} {b.x:.1f} {middle:.1f} {b.x:.1f} {b.y:.1f}"
    return html('<path class="edge" data-from="{}" data-to="{}" d="{}"/>', parent, child, path)


def draw_node(node: TraceNode, place: Position) -> Html:
    """A box with the node's name, and its operation below it."""
    # Of a parameter's name the end says more.
    tail = node.name if len(node.name) < 18 or not node.leaf else ".." + node.name[-15:]
    op = shorten("" if node.leaf else node.op, 22)
    frame = (
        '<g class="node {}" tabindex="0" transform="translate({:.1f} {:.1f})"><title>{}</title>'
        '<rect x="-64" y="-17" width="128" height="34" rx="7"/><text y="{}">{}</text>{}</g>'
    )
    second = html('<text class="op" y="11">{}</text>', op) if op else None
    hint = f"{node.name}: {format_cell(node.value)}"
    return html(frame, node.kind, place.x, place.y, hint, -2 if op else 4, shorten(tail, 17), second)


def list_nodes(trace: Trace) -> Html:
    """All nodes in order, with what a cell can hold."""
    found = trace.derivatives
    row = '<tr data-node="{}"><td>{}</td><td>{}</td>' + 4 * '<td class="mono">{}</td>' + "</tr>"
    rows = [
        html(
            row,
            node.index,
            node.index + 1,
            shorten(node.name, 34),
            shorten(format_operation(trace.program, node), 60),
            format_cell(node.value),
            format_cell(found.tangents[node.index]),
            format_cell(found.adjoints[node.index]),
        )
        for node in trace.program.nodes
    ]
    names = ("", "name", "operation", "value", f"tangent along {found.along}", "adjoint")
    head = [html("<th>{}</th>", name) for name in names]
    return html('<div class="wide"><table><tr>{}</tr>{}</table></div>', head, rows)


def list_costs(trace: Trace) -> Html:
    """What each mode takes, beside the others."""
    heads = ("mode", "passes for the gradient", "FLOPs a pass", "time a pass", "memory beyond the inputs")
    rows = [
        html("<tr>{}</tr>", [html('<td class="{}">{}</td>', "number" if j else "", x) for j, x in enumerate(row)])
        for row in map(format_cost, trace.costs)
    ]
    head = [html('<th class="{}">{}</th>', "number" if j else "", name) for j, name in enumerate(heads)]
    return html('<div class="wide"><table><tr>{}</tr>{}</table></div>', head, rows)
